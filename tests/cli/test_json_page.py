"""docs/json.md shows what every command prints with `--json`: each is run, and its shape compared.

CBENCH_GOLDEN=1 writes the shapes into the page.
"""

import argparse
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from cbench_server.cli.parser import build_parser
from tests.fixtures import preloaded

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json.md"
BLOCK = re.compile(r"^\$ (cbench [^\n]*)\n(.*?)(?=^\$ |\Z)", re.M | re.S)
FENCE = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
# What needs more than a store to have something to print; the page says so.
LEFT_OUT = {
    "cbench judge",
    "cbench tokens",
    "cbench memory",
    "cbench completion",
    "cbench model",
    "cbench store",
    "cbench model serve",
    "cbench config",
    "cbench config schema",
}


def shape(value: Any) -> Any:
    """Replace values by the names of their kinds; a list has one shape for all of it."""
    match value:
        case dict():
            shapes = {name: shape(each) for name, each in sorted(value.items())}
            if len(shapes) > 12 and set(map(str, shapes.values())) <= {"number", "null"}:
                return {"NAME": "number or null"}  # metrics, of which there may be more
            return shapes
        case list():
            return [_merged([shape(each) for each in value])] if value else []
        case bool():
            return "true or false"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return "null"


def _merged(shapes: list[Any]) -> Any:
    if all(isinstance(each, dict) for each in shapes):
        names = dict.fromkeys(name for each in shapes for name in each)
        return {name: _merged([each[name] for each in shapes if name in each]) for name in names}
    if all(isinstance(each, list) for each in shapes):
        inner = [item for each in shapes for item in each]
        return [_merged(inner)] if inner else []
    kinds = dict.fromkeys(json.dumps(each, ensure_ascii=False).strip('"') for each in shapes)
    return shapes[0] if len(kinds) == 1 else " or ".join(sorted(kinds))


def drawn(value: Any) -> str:
    text = json.dumps(shape(value), indent=2, ensure_ascii=False)
    # A short object stands on one line.
    return re.sub(r"\{[^{}]{,90}\}", lambda found: " ".join(found[0].split()), text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("json")
    (folder / "original.json").write_text('{"question": "Where?", "answer": "Rome"}')
    (folder / "processed.json").write_text('{"response": "In Rome."}')
    return folder


def printed(line: str, folder: Path) -> Any:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("CBENCH_")},
        "CBENCH_HOME": str(folder / "home"),
        "CBENCH_TOKEN_FILE": str(folder / "tokens"),
    }
    command = [str(preloaded.CBENCH), *shlex.split(line)[1:]]
    done = preloaded.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"$ {line}\n{done.stderr}"
    return json.loads(done.stdout)


@pytest.mark.timeout(300)
def test_every_command_prints_what_the_page_shows(folder: Path) -> None:
    page = PAGE.read_text()
    commands = [found for block in FENCE.findall(page) for found in BLOCK.findall(block)]
    assert commands
    for line, shown in commands:
        actual = drawn(printed(line, folder)) + "\n"
        if os.environ.get("CBENCH_GOLDEN") == "1":
            page = page.replace(f"$ {line}\n{shown}", f"$ {line}\n{actual}", 1)
        else:
            assert actual == shown, f"$ {line}"
    if os.environ.get("CBENCH_GOLDEN") == "1":
        PAGE.write_text(page)


def leaves(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    below = [leaf for a in inner for each in a.choices.values() for leaf in leaves(each)]
    return below if parser.prog == "cbench" else [parser, *below]


def test_every_command_that_prints_something_takes_json_and_quiet() -> None:
    for parser in leaves(build_parser()):
        flags = parser._option_string_actions
        assert "--quiet" in flags, parser.prog
        if parser.prog not in LEFT_OUT | {"cbench score"}:
            assert "--json" in flags, parser.prog


def test_every_command_with_json_is_on_the_page() -> None:
    page = PAGE.read_text()
    for parser in leaves(build_parser()):
        if "--json" in parser._option_string_actions:
            assert re.search(rf"{parser.prog}\b", page), parser.prog


@pytest.mark.timeout(300)
def test_quiet_commands_say_nothing_on_stderr(tmp_path: Path) -> None:
    environment = {**os.environ, "CBENCH_HOME": str(tmp_path)}
    lines = (
        "run --builtin identity --dataset mini-qa -n 1",
        "export last -o run.csv",
        "runs pin last",
        "runs unpin last",
        "runs delete last",
        "runs",
    )
    for line in lines:
        command = [str(preloaded.CBENCH), *line.split(), "--quiet"]
        done = preloaded.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), line
