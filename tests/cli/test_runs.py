"""Looking at stored runs: listing, showing, cancelling, deleting."""

from functools import partial

import pytest

from tests.cli.conftest import Cbench, Serve, complaint, strict


@pytest.fixture
def cbench(cbench: Cbench, daemon_address: str) -> Cbench:
    """`cbench` with a daemon that stays: quicker than one for each command."""
    return partial(cbench, CBENCH_SERVER=daemon_address)


def _make(cbench: Cbench, *words: str) -> str:
    finished = cbench("run", "--dataset", "mini-qa", "-n", "2", "--output", "json", *words)
    assert finished.returncode == 0, finished.stderr
    return str(strict(finished.stdout)["run_id"])


def test_runs_are_listed_filtered_and_deleted(cbench: Cbench) -> None:
    first = _make(cbench, "--builtin", "identity", "--label", "a=1")
    second = _make(cbench, "--builtin", "truncate-tail", "--label", "a=2")
    table = cbench("runs").stdout.splitlines()
    assert [line.split()[0] for line in table[2:]] == [second, first]
    assert table[0].split() == [
        *("Run", "Started", "State", "Rows", "Failed", "Score", "Datasets", "By", "Labels")
    ]
    assert table[2].split()[1].count("-") == 2
    assert table[2].split()[3:6] == ["succeeded", "2", "0"]
    assert "answer_retained: truncate-tail " in table[2]
    listed = strict(cbench("runs", "list", "--label", "a=1", "--output", "json").stdout)
    assert [run["run_id"] for run in listed] == [first]
    assert strict(cbench("runs", "--state", "failed", "--output", "json").stdout) == []
    assert len(strict(cbench("runs", "--limit", "1", "--output", "json").stdout)) == 1

    cancelled = cbench("cancel", "last")
    assert (cancelled.returncode, cancelled.stdout) == (0, "")
    assert f"{second} succeeded" in cancelled.stderr

    ambiguous = cbench("show", first[:4])
    assert ambiguous.returncode == 2
    assert f'2 runs begin with "{first[:4]}": {second}, {first}.' in complaint(ambiguous)

    deleted = cbench("runs", "delete", first[:-2], "last")
    assert deleted.returncode == 0, deleted.stderr
    assert strict(cbench("runs", "--output", "json").stdout) == []


def test_an_unknown_run_is_refused_and_nothing_is_deleted(cbench: Cbench) -> None:
    kept = _make(cbench, "--builtin", "identity")
    refused = cbench("runs", "delete", "last", "19990101")
    assert refused.returncode == 2
    assert complaint(refused) == 'no run "19990101". List them with: cbench runs'
    assert strict(cbench("show", "last", "--output", "json").stdout)["run_id"] == kept


def test_every_score_has_its_mean_and_those_of_added_evaluators_are_shown(
    cbench: Cbench, serve: Serve
) -> None:
    made = cbench(
        *("run", "--system", serve("both"), "--dataset", "mini-qa", "-n", "4"),
        *("--evaluator", "subspan-em"),
    )
    assert made.returncode == 0, made.stderr
    headline, _, rest = made.stdout.partition("Other scores\n")
    assert headline.split()[1] == "f1"
    assert "subspan_em" in rest
    assert "recall" not in rest.partition("\n\n")[0]
    every = cbench("show", "last", "--scores").stdout
    lines = [line.split() for line in every.splitlines()[2:]]
    assert {line[1] for line in lines} >= {"f1", "exact_match", "recall", "contains", "subspan_em"}
    assert lines[0][1] == "f1"
    plain = strict(cbench("show", "last", "--scores", "--output", "json").stdout)
    values = next(iter(plain.values()))
    assert values["num_scored:subspan_em"] > 0
    run = strict(cbench("show", "last", "--output", "json").stdout)
    assert run["summary"]["answering"]["mean_score:f1"] is not None
    assert "mean_score:subspan_em" in cbench("export", "last", "--format", "markdown").stdout


def test_a_run_its_rows_and_one_example_are_shown(cbench: Cbench, serve: Serve) -> None:
    run_id = _make(cbench, "--system", serve("both"))
    assert "answering" in cbench("show", run_id).stdout
    rows = cbench("show", "last", "--rows", "3").stdout.splitlines()
    assert len(rows) == 5
    failed = cbench("show", "last", "--failed").stdout
    assert "2  mini-qa-001, mini-qa-002  EXCEPTION: ValueError: no luck" in failed
    assert "answering" not in failed
    one = cbench("show", "last", "--example", "mini-qa-002").stdout
    assert "  answer: 1794" in one
    assert "  response: In which year was the stone bridge built?" in one
    assert "f1 = 0.0000  (primary)" in one
    assert "failed (system, EXCEPTION)" in one
    document = strict(
        cbench(
            "show",
            "last",
            "--example",
            "mini-qa-002",
            "--system",
            "answering",
            "--output",
            "json",
        ).stdout
    )
    assert [row["original"]["answer"] for row in document] == ["1794"]
    assert document[0]["processed"]["response"] == document[0]["original"]["question"]


def test_what_a_run_does_not_have_is_said(cbench: Cbench) -> None:
    _make(cbench, "--builtin", "identity")
    assert 'Did you mean "identity"?' in complaint(
        cbench("show", "last", "--system", "identiti", "--rows", "1")
    )
    assert 'no row for example "x"' in complaint(cbench("show", "last", "--example", "x"))
    assert "no failed rows" in cbench("show", "last", "--failed").stdout


def test_what_a_daemon_made_is_there_without_it(cbench: Cbench) -> None:
    run_id = _make(cbench, "--builtin", "identity")
    alone = cbench("show", "last", "--output", "json", CBENCH_SERVER="")
    assert strict(alone.stdout)["run_id"] == run_id
    for choice in ([], ["--limit", "1"], ["--mine"], ["--label", "a=1"], ["--state", "succeeded"]):
        listed = cbench("runs", *choice)
        assert listed.returncode == 0, listed.stderr
        without = cbench("runs", *choice, CBENCH_SERVER="")
        assert (without.stdout, without.stderr) == (listed.stdout, listed.stderr)
    refused = cbench("runs", "--tls", CBENCH_SERVER="")
    assert (refused.returncode, complaint(refused)) == (2, "--tls needs --server.")


def test_a_finished_run_can_be_watched_again(cbench: Cbench) -> None:
    _make(cbench, "--builtin", "identity")
    watched = cbench("watch", "last", "--output", "jsonl")
    assert watched.returncode == 0, watched.stderr
    # In the order in which they were made: those timed alone are drawn by seed.
    assert sorted(strict(line)["index"] for line in watched.stdout.splitlines()) == [0, 1]
    resumed = cbench("resume", "last")
    assert resumed.returncode == 1
    assert "nothing left to resume" in complaint(resumed)
