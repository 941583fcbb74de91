"""`cbench compare`: which systems are paired, and what is printed."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Cbench, complaint, strict


@pytest.fixture
def cbench(cbench: Cbench, daemon_address: str) -> Cbench:
    """`cbench` with a daemon that stays: quicker than one for each command."""
    return partial(cbench, CBENCH_SERVER=daemon_address)


def make(cbench: Cbench, *builtins: str, dataset: str = "mini-qa") -> str:
    flags = [word for name in builtins for word in ("--builtin", name)]
    finished = cbench("run", "--dataset", dataset, *flags, "--output", "json", "--quiet")
    assert finished.returncode == 0, finished.stderr
    return str(strict(finished.stdout)["run_id"])


def test_the_systems_of_a_run_are_compared_with_each_other(cbench: Cbench) -> None:
    run = make(cbench, "identity", "truncate-head", "random-drop")
    finished = cbench("compare", run, "--flips", "1")
    assert finished.returncode == 0, finished.stderr
    first, second, third = finished.stdout.splitlines()[:3]
    assert first.startswith("identity is better than truncate-head on answer_retained by ")
    assert "more context tokens." in second
    assert "No difference can be claimed" in third
    assert "Quality against context tokens" in finished.stdout
    assert "Flipped: " in finished.stdout

    document = strict(cbench("compare", run, "--output", "json").stdout)
    assert [(pair["a"], pair["b"]) for pair in document["pairs"]] == [
        ("identity", "truncate-head"),
        ("identity", "random-drop"),
        ("truncate-head", "random-drop"),
    ]
    assert document["pairs"][0]["is_claimed"] is True
    assert {front["axis"] for front in document["fronts"]} == {"context_tokens", "latency"}

    page = cbench("compare", run, "--output", "markdown", "--systems", "identity,random-drop")
    assert page.stdout.startswith("# Comparison\n\n- identity is better than random-drop")

    against = strict(cbench("compare", run, "--baseline", "identity", "--output", "json").stdout)
    assert [pair["b"] for pair in against["pairs"]] == ["identity", "identity"]


def test_two_runs_are_compared_by_the_names_of_their_systems(cbench: Cbench) -> None:
    first, second = make(cbench, "truncate-head"), make(cbench, "truncate-head", "identity")
    finished = cbench("compare", first, second)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith(
        f"truncate-head ({first}) and truncate-head ({second}) have the same "
    )
    across = cbench("compare", first, second, "--systems", "truncate-head,identity")
    assert across.stdout.startswith("identity is better than truncate-head")


def test_what_else_differs_between_two_runs_is_noted(cbench: Cbench, tmp_path: Path) -> None:
    runs = []
    for words in ("Rome is old", "Rome is very old"):
        file = tmp_path / "data.jsonl"
        file.write_text(json.dumps({"id": 1, "context": words, "answer": "Rome", "question": "?"}))
        runs.append(make(cbench, "identity", dataset=str(file)))
    notes = strict(cbench("compare", *runs, "--output", "json").stdout)["notes"]
    assert any("was read from different data" in note for note in notes)
    assert any("same id but a different length" in note for note in notes)


def test_corrected_references_are_noted_even_when_they_came_with_an_earlier_rescoring(
    cbench: Cbench, tmp_path: Path
) -> None:
    run = make(cbench, "identity")
    corrected = tmp_path / "corrected.jsonl"
    corrected.write_text(json.dumps({"id": "mini-qa-001", "answer": "nowhere to be found"}) + "\n")
    for flags in (["--references", str(corrected)], []):
        assert cbench("rescore", "last", *flags, "--quiet").returncode == 0
        notes = strict(cbench("compare", run, "last", "--output", "json").stdout)["notes"]
        assert any("scored with different references" in note for note in notes)
        page = cbench("report", run, "--compare", "last", "-o", "-")
        assert "scored with different references" in page.stdout


def test_what_cannot_be_compared_is_said_in_one_line(cbench: Cbench) -> None:
    one, other = make(cbench, "identity"), make(cbench, "truncate-head", dataset="long-notes")
    again = make(cbench, "identity")
    cases = {
        (one,): "Name a second run",
        (one, other): "have no example in common",
        (one, "--systems", "identitty"): 'Did you mean "identity"?',
        (one, other, "--systems", "identity"): 'has no system "identity"',
        (one, one): f"both runs are {one}",
        (one, again, "--score-field", "nope"): 'has the score "nope"; there is: answer_recall',
        (one, one, "--baseline", "identity"): "a baseline is a system of one run",
        (one, "--effect", "0"): "is not above 0",
    }
    for words, said in cases.items():
        finished = cbench("compare", *words)
        assert finished.returncode == 2, words
        assert said in complaint(finished), words
