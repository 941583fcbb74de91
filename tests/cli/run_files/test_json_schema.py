"""The published JSON Schema, by a validator: it takes what we take, and refuses what we refuse."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from cbench_server.cli.exits import UsageError
from cbench_server.cli.run_files.reading import parse_document
from cbench_server.cli.run_files.writing import to_toml
from tests.cli.run_files.documents import documents

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "run-file.schema.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)


def test_the_schema_is_a_schema() -> None:
    type(VALIDATOR).check_schema(SCHEMA)


@given(document=documents())
@settings(max_examples=60, deadline=None)
def test_every_file_that_we_read_is_valid(document: dict[str, Any]) -> None:
    VALIDATOR.validate(tomllib.loads(to_toml(document)))


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.toml")), ids=lambda p: p.name)
def test_run_files_of_the_examples_are_valid(path: Path) -> None:
    document = tomllib.loads(path.read_text())
    if "systems" not in document:
        pytest.skip("no run file")
    VALIDATOR.validate(document)


@pytest.mark.parametrize(
    "text",
    [
        'system = [{ builtin = "identity" }]',
        '[[systems]]\nbuiltn = "identity"',
        "[[systems]]\nbuiltin = 3",
        '[[systems]]\nbuiltin = "identity"\nbatch = 3',
        '[[datasets]]\nname = "mini-qa"\nmax_examples = "ten"',
        'controls = "some"',
    ],
    ids=["unknown-table", "unknown-key", "type", "key-of-another-way", "number-as-text", "choice"],
)
def test_what_we_refuse_is_not_valid(text: str) -> None:
    with pytest.raises(UsageError):
        parse_document(text)
    assert not VALIDATOR.is_valid(tomllib.loads(text))
