"""Help is quick, complete and written down; mistakes get the nearest right thing."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench_server.cli.parser import COMMANDS, build_parser
from tests.cli.conftest import Cbench, complaint

_ROOT = Path(__file__).parent.parent.parent

_ASK_FOR_HELP = """
import contextlib, io, json, sys
from cbench_server.cli import main
for words in json.loads(sys.argv[1]):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as help_text:
        main([*words, "--help"])
    assert "usage: cbench" in help_text.getvalue(), words
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _parsers(child)


_COMMANDS = [parser.prog.split()[1:] for parser in _parsers(build_parser())]


def test_no_help_loads_anything_heavy() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", _ASK_FOR_HELP, json.dumps(_COMMANDS)],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(json.loads(finished.stdout))
    heavy = {"grpc", "google", "sqlalchemy", "alembic", "rich", "datasets", "httpx", "tiktoken"}
    assert "cbench_server" in loaded
    assert not loaded & (heavy | {"asyncio", "cbench_client", "msgspec", "platformdirs"})


_JUDGE = ["--dataset", "x", "--judge-url", "http://x"]


@pytest.mark.parametrize("words", _COMMANDS[1:], ids=" ".join)
def test_every_command_leads_somewhere(words: list[str]) -> None:
    parser = build_parser()
    filled = {
        "memory": ["run"],
        "judge": ["check", *_JUDGE],
        "delete": ["x"],
        "show": ["x"],
        "score": ["--evaluator", "x", "a", "b"],
        "tokens": ["list"],
        "config": ["schema"],
        "completion": ["bash"],
        "init": ["python"],
        "model": ["list"],
        "store": ["check"],
        "copy": ["x", "y"],
        "archive": ["x", "--to", "y"],
    }
    alone = {
        "runs",
        "prune",
        "list",
        "run",
        "try",
        "datasets",
        "evaluators",
        "metrics",
        "systems",
        "doctor",
        "fetch",
        "path",
        "remove",
        "serve",
    }
    last = words[-1]
    rest = filled.get(last, [] if last in alone else ["x"])
    if words[0] == "config" and last != "config":
        rest = []
    args = parser.parse_args([*words, *(_JUDGE if words == ["judge", "check"] else rest)])
    assert callable(args.handler)


def test_every_command_is_a_file_of_its_name() -> None:
    files = (_ROOT / "cbench_server" / "cli" / "commands").glob("*.py")
    assert {path.stem for path in files} - {"__init__"} == COMMANDS.keys()


def test_the_page_about_the_command_line_is_up_to_date() -> None:
    script = _ROOT / "scripts" / "gen_cli_docs.py"
    finished = subprocess.run([sys.executable, str(script), "--check"], capture_output=True)
    assert finished.returncode == 0, finished.stderr.decode()


SMALL = ["--builtin", "identity", "--dataset", "mini-qa"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rn"], 'no command "rn". Did you mean "run"?'),
        (["runs", "delte"], 'no command "delte". Did you mean "delete"?'),
        (["run", "--dataste", "x"], 'unknown flag "--dataste". Did you mean "--dataset"?'),
        (["run", "--file=x"], 'unknown flag "--file=x". Did you mean "--dataset"?'),
        (["run", "--verbose"], 'unknown flag "--verbose". See: cbench run --help'),
        (["doctor", "--limit", "3"], 'unknown flag "--limit". See: cbench doctor --help'),
        (["run", "--output", "jsn"], 'no --output "jsn". Did you mean "json"?'),
        (["run", "--timeout", "soon"], '"soon" is not a time'),
        (["run", "-n", "0"], '"0" is not a whole number of at least 1'),
        (["show"], "the following arguments are required: RUN. See: cbench show --help"),
        (["run", "--dataset", "x"], "name at least one system"),
        (["run", "--builtin", "x"], "name at least one --dataset"),
        (["run", *SMALL, "--score-field", "f11"], "--score-field: no evaluator"),
        (["run", *SMALL, "--map", "a=b", "--map", "c=d,a=e"], "it maps a more than once"),
        (["run", *SMALL, "--repeats=99999999"], "--repeats must be at most 10,000"),
    ],
    ids=[
        *("command", "action", "flag", "elsewhere", "far", "none", "choice", "time", "number"),
        *("missing", "system", "dataset", "refused", "twice", "too-many"),
    ],
)
def test_a_mistake_is_one_line_with_the_way_out(
    cbench: Cbench, words: list[str], expected: str
) -> None:
    finished = cbench(*words)
    assert finished.returncode == 2
    assert expected in complaint(finished)
    assert finished.stdout == ""


def test_no_command_at_all_shows_the_commands(cbench: Cbench) -> None:
    finished = cbench()
    assert finished.returncode == 2
    assert "doctor" in finished.stderr


def test_flags_before_an_action_stand() -> None:
    parser = build_parser()
    args = parser.parse_args(["runs", "--limit", "3", "--server", "a:1", "list"])
    assert (args.limit, args.server, args.output) == (3, "a:1", "table")
    args = parser.parse_args(["runs", "list", "--limit", "4"])
    assert (args.limit, args.server) == (4, None)
