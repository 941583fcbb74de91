"""A file becomes a spec, the spec a file, and that file the same spec."""

import json
import tomllib
from pathlib import Path
from typing import Any

from hypothesis import given, settings

from cbench_server.cli.run_files import lines
from cbench_server.cli.run_files.from_spec import document_of_spec
from cbench_server.cli.run_files.json_schema import json_schema
from cbench_server.cli.run_files.reading import parse_document
from cbench_server.cli.run_files.writing import to_toml
from tests.cli.run_files.documents import documents, spec_of

PUBLISHED = Path(__file__).parents[3] / "docs" / "run-file.schema.json"


@given(document=documents())
@settings(max_examples=60, deadline=None)
def test_a_file_of_a_spec_asks_for_the_same(document: dict[str, Any]) -> None:
    assert parse_document(to_toml(document)) == _with_seconds(document)
    spec = spec_of(document)
    again, remarks = document_of_spec(spec)
    assert remarks == []
    assert spec_of(parse_document(to_toml(again))) == spec


@given(document=documents())
@settings(max_examples=30, deadline=None)
def test_every_key_has_its_line(document: dict[str, Any]) -> None:
    text = to_toml(document)
    found, written = lines.lines_of(text), text.split("\n")
    for path in _paths(tomllib.loads(text)):
        line = written[found[path] - 1]
        assert isinstance(path[-1], int) or str(path[-1]) in line or "\\" in line


def test_the_published_schema_is_current() -> None:
    assert json.loads(PUBLISHED.read_text()) == json_schema()


def _paths(value: Any, path: lines.Path = ()) -> list[lines.Path]:
    inside: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inside = enumerate(value)
    deeper = [each for name, part in inside for each in _paths(part, (*path, name))]
    return ([path] if path else []) + deeper


def _with_seconds(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out empty tables, as reading does."""
    return {name: value for name, value in document.items() if value not in ({}, [])}
