"""`cbench try`: one example, before and after."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAMS, Cbench, complaint

LINES = shlex.join([sys.executable, str(PROGRAMS / "lines.py"), "plain"])


def test_what_a_system_took_away_is_shown_and_nothing_is_kept(cbench: Cbench, home: Path) -> None:
    finished = cbench("try", "--builtin", "truncate-head", "--option", "ratio=0.5")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("truncate-head on long-notes-001 of long-notes\ncontext:\n[-")
    assert "answer_retained = " in finished.stdout
    assert " tokens, " in finished.stdout
    assert "\x1b" not in finished.stdout
    assert not (home / "cbench.db").exists()


def test_a_text_of_ones_own_and_the_message_that_was_sent(cbench: Cbench, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Ann, we meet on Monday.")
    finished = cbench(
        *("try", "--exec", LINES, "--option", "keep=9", "--name", "short"),
        *("--text", "letter.txt", "--question", "When?", "--message"),
    )
    assert finished.returncode == 0, finished.stderr
    assert "Dear Ann, [-we meet on Monday.-]" in finished.stdout
    assert '"question": "When?"' in finished.stdout
    assert 'options: {"keep": 9}' in finished.stdout
    as_json = cbench(
        *("try", "--exec", LINES, "--option", "keep=9", "--output", "json"),
        *("--text", "letter.txt", "--question", "When?", "--message"),
    )
    (row,) = json.loads(as_json.stdout)
    assert row["message"]["example"]["context"] == row["original"]["context"]
    assert row["processed"]["context"] == "Dear Ann,"


def test_references_are_not_in_the_message(cbench: Cbench) -> None:
    finished = cbench(
        *("try", "--builtin", "identity", "--dataset", "mini-qa", "--example", "mini-qa-003"),
        *("--message", "--output", "json"),
    )
    (row,) = json.loads(finished.stdout)
    assert row["example_id"] == "mini-qa-003"
    assert "answer" in row["original"]
    assert "answer" not in row["message"]["example"]


def test_a_system_that_fails_says_how(cbench: Cbench) -> None:
    command = shlex.join([sys.executable, str(PROGRAMS / "lines.py"), "refuses"])
    finished = cbench("try", "--exec", command)
    assert finished.returncode == 1
    assert "failed (TOO_HARD): not this one" in finished.stdout


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((), "name at least one system"),
        (("--builtin", "identity", "--output", "csv"), "table or json, not csv"),
        (("--builtin", "identity", "--example", "nope"), "no example has id=nope"),
        (("--builtin", "identity", "--question", "Who?"), "--question belongs to --text"),
        (("--builtin", "identity", "--text", "gone.txt"), "gone.txt"),
        (("--builtin", "identity", "--server", "localhost:1"), "Leave out --server"),
    ],
)
def test_what_cannot_be_tried_is_said(cbench: Cbench, flags: tuple[str, ...], says: str) -> None:
    finished = cbench("try", *flags)
    assert finished.returncode == 2
    assert says in complaint(finished)
