"""Every flag of every command with values that nobody means: a line that names it, or taken."""

import argparse
import io
from collections.abc import Iterator
from contextlib import redirect_stderr

import pytest

from cbench_server.cli.parser import build_parser
from tests.cli.conftest import Cbench, complaint

DIGITS = "9" * 5000
ODD = (
    "",
    " ",
    "\n",
    "a\nb",
    "\033[31m",
    "\u202e漢字",
    "-1",
    "0",
    "nan",
    "-inf",
    "1e999",
    DIGITS,
    f"{DIGITS}h",
    f"{DIGITS}w",
    f"{DIGITS}G",
    f"{DIGITS},1",
    "../a/b",
    "=",
    "a=b",
    "a=" + "[" * 100_000,
    "x" * 100_000,
)
# A dry run says what it would do, and calls nobody; these come before it or have no use there.
DRY = ("run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "1", "--dry-run")
LEFT_OUT = ("--output", "--ray-address", "--data-dir")


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of each command and action."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from parsers(each)


PARSERS = {each.prog: each for each in parsers(build_parser())}


def refusal(parser: argparse.ArgumentParser, words: list[str]) -> str:
    """Return what parsing a line complains of, empty if it is taken."""
    told = io.StringIO()
    code = 0
    try:
        with redirect_stderr(told):
            parser.parse_known_args(words)
    except SystemExit as end:
        code = int(end.code or 0)
    assert code == (2 if told.getvalue() else 0)
    return told.getvalue()


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_a_value_is_taken_or_refused_in_a_line_that_names_its_flag(name: str) -> None:
    parser = PARSERS[name]
    for action in parser._actions:
        if not action.option_strings or action.nargs == 0:
            continue
        flag = action.option_strings[-1]
        for value in ODD:
            told = refusal(parser, [f"{flag}={value}"])
            if not told or "arguments are required" in told:
                continue
            assert told.startswith("cbench: "), told
            assert told.endswith(f" See: {name} --help\n"), told
            assert told[:-1].isprintable(), repr(told)
            assert len(told) < 1000
            assert flag in told, told


def test_what_is_not_utf_8_is_refused_before_anything_is_sent(cbench: Cbench) -> None:
    told = complaint(cbench("run", "--builtin", "identity", "--model", "\udcff"))
    assert told.startswith('argument 5, "�", is not UTF-8.')


def test_an_empty_value_is_refused_where_it_would_mean_any_run_or_this_machine(
    cbench: Cbench,
) -> None:
    assert cbench("run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "1").returncode == 0
    for words, name in (
        (["runs", "delete", ""], "RUN"),
        (["runs", "--server", ""], "--server"),
        (["show", ""], "RUN"),
        (["run", "--replicas", ""], "--replicas"),
    ):
        assert complaint(cbench(*words)).startswith(f"argument {name}: the value is empty.")
    assert cbench("show", "last").returncode == 0


def test_a_name_of_pages_is_refused_in_a_line(cbench: Cbench) -> None:
    flags = [
        action.option_strings[-1]
        for action in PARSERS["cbench run"]._actions
        if action.nargs != 0 and action.type is None and action.choices is None
    ]
    assert "--dataset" in flags
    for flag in sorted({*flags} - {*LEFT_OUT}):
        done = cbench(*DRY, f"{flag}={'漢 字' * 10_000}")
        if done.returncode:
            assert done.returncode == 2, (flag, done.stderr)
            assert len(complaint(done)) < 2200, flag
