"""`cbench run`, from flags to what it prints."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAMS, Cbench, Serve, complaint, strict

_EXAMPLES = [
    {"id": number, "context": f"The code is {number}. " * 20, "question": "code?", "answer": "code"}
    for number in range(6)
]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    path = tmp_path / "my-codes.jsonl"
    path.write_text("".join(f"{json.dumps(example)}\n" for example in _EXAMPLES))
    return path


def test_systems_in_other_processes_and_controls_share_a_table(
    cbench: Cbench, serve: Serve
) -> None:
    finished = cbench(
        "run",
        "--system",
        serve("both"),
        "--builtin",
        "identity",
        "--dataset",
        "mini-qa",
        "-n",
        "5",
        "--label",
        "why=test",
    )
    assert finished.returncode == 0, finished.stderr
    lines = finished.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["answering", "failing", "identity"]
    assert lines[3].split()[-1] == "5"
    assert "5 rows failed (EXCEPTION 5)" in finished.stdout
    assert "cbench show 2" in finished.stdout
    assert "answering 5/5  failing 5/5 (5 failed)  identity 5/5" in finished.stderr


def test_the_table_says_on_which_rows_its_times_stand(cbench: Cbench) -> None:
    command = ("run", "--builtin", "identity", "--builtin", "truncate-head", "--dataset", "mini-qa")
    shown = cbench(*command, "-n", "9", "--timed-rows", "4").stdout
    assert "p50 alone" in shown
    assert "p50 and p95: alone, n=4." in shown
    assert "share the daemon's machine" not in shown, "controls take microseconds"
    shown = cbench(*command, "-n", "9", "--timed-rows", "0").stdout
    assert "p50 alone" not in shown
    assert "p50 and p95: all rows, under load." in shown
    refused = cbench(*command, "--timed-rows", "-1")
    assert (refused.returncode, "not a whole number of at least 0" in refused.stderr) == (2, True)


def test_json_holds_the_run_and_its_rows_in_order(cbench: Cbench, serve: Serve) -> None:
    finished = cbench(
        "run",
        "--system",
        serve("both"),
        "--dataset",
        "mini-qa",
        "-n",
        "4",
        "--repeats",
        "2",
        "--output",
        "json",
        "--seed",
        "-3",
    )
    assert finished.returncode == 0, finished.stderr
    document = strict(finished.stdout)
    assert document["state"] == "succeeded"
    assert document["spec"]["seed"] == -3
    keys = [(row["system"], row["index"], row["repeat"]) for row in document["rows"]]
    assert keys == [(s, i, r) for s in ("answering", "failing") for i in range(4) for r in range(2)]
    assert document["summary"]["failing"]["mean_score"] is None
    assert document["summary"]["failing"]["mean_score_with_failures"] == 0.0
    assert document["rows"][-1]["failure"]["message"].endswith("no luck")


def test_jsonl_prints_every_row_once(cbench: Cbench) -> None:
    finished = cbench("run", "--builtin", "identity", "--dataset", "mini-qa", "--output", "jsonl")
    rows = [strict(line) for line in finished.stdout.splitlines()]
    assert sorted(row["index"] for row in rows) == list(range(48))


def test_csv_has_a_line_a_row(cbench: Cbench, examples: Path) -> None:
    finished = cbench(
        "run",
        "--builtin",
        "truncate-head",
        "--option",
        "ratio=0.25",
        "--dataset",
        examples,
        "--output",
        "csv",
        "--quiet",
    )
    rows = list(csv.DictReader(io.StringIO(finished.stdout)))
    assert [row["example_id"] for row in rows] == [str(number) for number in range(6)]
    assert {row["dataset"] for row in rows} == {"my-codes"}
    assert all(int(row["context_tokens_out"]) < int(row["context_tokens_in"]) / 3 for row in rows)
    assert finished.stderr == ""


def test_markdown_names_every_metric(cbench: Cbench) -> None:
    finished = cbench(
        "run",
        "--builtin",
        "identity",
        "--dataset",
        "mini-qa",
        "-n",
        "3",
        "--dataset",
        "long-notes",
        "--output",
        "markdown",
    )
    assert finished.stdout.startswith("# Evaluation Results\n\n| System | mean_score |")
    assert "dataset:long-notes" in finished.stdout
    assert "*6 examples*" in finished.stdout


def test_a_gzipped_file_is_cut_to_size_and_named_by_its_stem(
    cbench: Cbench, examples: Path
) -> None:
    packed = examples.with_name("packed.jsonl.gz")
    packed.write_bytes(gzip.compress(examples.read_bytes()))
    finished = cbench(
        "run", "--builtin", "identity", "--dataset", packed, "-n", "2", "--output", "json"
    )
    document = strict(finished.stdout)
    assert [row["dataset"] for row in document["rows"]] == ["packed", "packed"]


def test_a_bad_line_is_named_and_can_be_left_out(cbench: Cbench, examples: Path) -> None:
    lines = examples.read_text().splitlines()
    examples.write_text("\n".join([*lines[:2], '{"id": 7,', *lines[2:]]))
    command = ("run", "--builtin", "identity", "--dataset", examples, "--output", "json")
    refused = cbench(*command)
    assert refused.returncode == 2
    assert complaint(refused).startswith(f"{examples}, line 3: invalid JSON")
    assert refused.stdout == ""
    lenient = cbench(*command, "--skip-bad-lines")
    assert len(strict(lenient.stdout)["rows"]) == 6
    assert f"left out 1 line of {examples}" in lenient.stderr


def test_references_are_withheld_unless_exposed(cbench: Cbench, serve: Serve) -> None:
    command = ("run", "--system", serve("answering"), "--dataset", "mini-qa", "-n", "2")
    withheld = cbench(*command)
    assert "References" not in withheld.stdout
    exposed = cbench(*command, "--expose-references")
    assert "References were exposed" in exposed.stdout
    assert "2 rows failed" in exposed.stdout


def test_a_spent_failure_budget_fails_the_run(cbench: Cbench, serve: Serve) -> None:
    finished = cbench(
        "run", "--system", serve("failing"), "--dataset", "mini-qa", "--max-failures", "3"
    )
    assert finished.returncode == 1
    assert "cbench resume 2" in finished.stdout
    assert "failed: " in complaint(finished)


def test_one_of_several_served_systems_can_be_named(cbench: Cbench, serve: Serve) -> None:
    finished = cbench(
        "run",
        "--system",
        f"{serve('both')}/answering",
        "--name",
        "mine",
        "--dataset",
        "mini-qa",
        "-n",
        "1",
        "--output",
        "json",
    )
    assert strict(finished.stdout)["systems"] == ["mine"]


def test_an_imported_module_brings_evaluators_and_metrics(cbench: Cbench) -> None:
    finished = cbench(
        "run",
        "--import",
        "registers",
        "--builtin",
        "identity",
        "--dataset",
        "mini-qa",
        "-n",
        "2",
        "--evaluator",
        "length",
        "--only-evaluators",
        "--metric",
        "longest",
        "--score-field",
        "length",
        PYTHONPATH=str(PROGRAMS),
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines()[0].split() == ["System", "longest", "Failed"]


@pytest.mark.parametrize(("name", "text"), [("head.csv", "context,question\n"), ("e.jsonl", "\n")])
def test_a_file_without_examples_is_named(
    cbench: Cbench, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    finished = cbench("run", "--builtin", "identity", "--dataset", name)
    assert finished.returncode == 2
    assert complaint(finished) == f"{name} contains no examples."


def test_a_file_without_references_is_said_to_be_before_the_first_call(
    cbench: Cbench, tmp_path: Path
) -> None:
    given = tmp_path / "bare.jsonl"
    given.write_text('{"id": 1, "context": "Paris is nice"}\n')
    finished = cbench("run", "--builtin", "truncate-tail", "--dataset", given, "--output", "json")
    [note] = [note for note in strict(finished.stdout)["notes"] if note["code"] == "NO_REFERENCES"]
    assert note["dataset"] == "bare"
    assert note["text"].startswith('No headline score: no example of "bare" has what f1')
    told = finished.stderr.splitlines()
    assert told.index(f"note: {note['text']}") < told.index("truncate-tail 1/1")
    # It is as true of the answers when they are scored again, until references come.
    again = strict(cbench("rescore", "last", "--output", "json").stdout)
    assert note in again["notes"]
    references = tmp_path / "references.jsonl"
    references.write_text('{"id": 1, "answer": "Paris"}\n')
    words = ["rescore", "last", "--references", references, "--output", "json"]
    assert note not in strict(cbench(*words).stdout)["notes"]


def test_what_gave_nothing_though_it_was_asked_for_is_said(cbench: Cbench) -> None:
    """An evaluator that had nothing to score, and a metric whose values are none."""
    words = ["--builtin", "identity", "--dataset", "mini-qa", "-n", "2", "--import", "registers"]
    asked = ["--evaluator", "multiple-choice", "--metric", "mean-score", "--metric", "careless"]
    finished = cbench("run", *words, *asked, PYTHONPATH=str(PROGRAMS))
    assert finished.returncode == 0, finished.stderr
    assert "multiple-choice scored no row: there was nothing to score" in finished.stdout
    [said] = [line for line in finished.stdout.splitlines() if line.startswith("Metric")]
    assert said.startswith('Metric "careless" lacks values: ')
    assert 'as "verdict"' in said
    assert 'as "rows"' in said
    # Where every row failed, that is why.
    failing = ["run", "--exec", "sleep 60", "--timeout", "100ms", "--dataset", "mini-qa", "-n", "2"]
    finished = cbench(*failing, "--evaluator", "multiple-choice")
    assert "2 rows failed" in finished.stdout
    assert "scored no row" not in finished.stdout
