"""`cbench run --predictions`: outputs that exist already are scored like a live system's."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cbench, complaint, strict

_EXAMPLES = [
    {"id": number, "context": f"The code of door {number} is {number * 111}.", "question": "code?"}
    | {"answer": str(number * 111)}
    for number in range(1, 5)
]


def write(path: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    return write(tmp_path / "doors.jsonl", _EXAMPLES)


def test_responses_and_contexts_are_scored_and_what_is_missing_has_failed(
    cbench: Cbench, examples: Path, tmp_path: Path
) -> None:
    right = write(
        tmp_path / "right.jsonl", [{"id": n, "response": str(n * 111)} for n in range(1, 5)]
    )
    # Ids from a CSV are text, and one of them is missing.
    partly = tmp_path / "partly.csv"
    partly.write_text("id,response\n1,111\n2,wrong\n3,333\n")
    kept = write(tmp_path / "kept.jsonl", [{"id": n, "context": f"{n * 111}"} for n in range(1, 5)])
    finished = cbench(
        "run",
        *("--predictions", right, "--predictions", partly, "--predictions", kept),
        *("--dataset", examples, "--output", "json"),
    )
    assert finished.returncode == 0, finished.stderr
    document = strict(finished.stdout)
    means = {name: each["mean_score_with_failures"] for name, each in document["summary"].items()}
    assert means == {"right": 1.0, "partly": 0.5, "kept": 1.0}
    failed = [row for row in document["rows"] if "failure" in row]
    assert [(row["system"], row["example_id"]) for row in failed] == [("partly", 4)]
    assert failed[0]["failure"]["reason"] == "NO_PREDICTION"
    assert all(row["context_only"] for row in document["rows"] if row["system"] == "kept")
    assert document["summary"]["kept"]["context_compression"] > 0.5
    # What it takes to look an answer up is not the time of the system that gave it.
    assert {each["latency_median"] for each in document["summary"].values()} == {None}
    assert "alone" not in cbench("show", "last").stdout
    assert {row["latency"] for row in document["rows"] if "failure" not in row} == {0.0}
    compared = strict(cbench("compare", "last", "--systems", "right,partly", "--json").stdout)
    assert "latency" not in {cost["axis"] for cost in compared["pairs"][0]["costs"]}
    assert "latency" not in {front["axis"] for front in compared["fronts"]}
    gated = cbench("gate", "last", "--system", "right", "--policy", "p95 latency at most 1s")
    assert gated.returncode == 2
    assert "no row tells what a call took" in gated.stdout + gated.stderr


def test_a_prediction_may_name_its_dataset(cbench: Cbench, examples: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "gates.jsonl", [{**each, "answer": "7"} for each in _EXAMPLES[:1]])
    given = [
        {"id": 1, "dataset": "doors", "response": "111"},
        {"id": 1, "dataset": "gates", "response": "7"},
    ]
    finished = cbench(
        "run",
        *("--predictions", write(tmp_path / "p.jsonl", given), "-n", "1", "--name", "published"),
        *("--dataset", examples, "--dataset", other, "--output", "json"),
    )
    assert finished.returncode == 0, finished.stderr
    assert strict(finished.stdout)["summary"]["published"]["mean_score"] == 1.0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"response": "x"}], "has no id"),
        ([{"id": 1, "pred": "x"}], "neither response nor context; it has: pred"),
        (
            [{"id": 1, "response": "x"}, {"id": "1", "response": "y"}],
            'two predictions for the id "1"',
        ),
    ],
    ids=["no-id", "other-field", "twice"],
)
def test_what_cannot_be_meant_is_refused(
    cbench: Cbench, examples: Path, tmp_path: Path, lines: list[dict[str, Any]], said: str
) -> None:
    given = write(tmp_path / "p.jsonl", lines)
    finished = cbench("run", "--predictions", given, "--dataset", examples)
    assert finished.returncode != 0
    assert said in complaint(finished)


def test_a_score_won_by_saying_everything_is_said_to_be(
    cbench: Cbench, examples: Path, tmp_path: Path
) -> None:
    echoed = [{"id": each["id"], "response": each["context"]} for each in _EXAMPLES]
    given = write(tmp_path / "echoes.jsonl", echoed)
    finished = cbench(
        "run", "--predictions", given, "--dataset", examples, "--score-field", "contains"
    )
    assert "echoes: 4 of 4 responses are far longer than an answer." in finished.stdout
    cbench("rescore", "last", "--evaluator", "answer-quality")
    exported = cbench("export", "last", "--format", "jsonl").stdout
    marks = [strict(line).get("marks", []) for line in exported.splitlines()]
    assert marks == [[]] * 4, "f1 counts there, by which it did not pay"


def test_a_score_won_by_keeping_every_name_is_said_to_be(cbench: Cbench, tmp_path: Path) -> None:
    text = (
        "Last winter Anna Berg moved from Oslo to Porto with Carl Lund, where they built wooden "
        "clocks for Maria Sousa and her sisters, who sold them in small shops near the harbour."
    )
    names = "Anna Berg, Oslo, Porto, Carl Lund, Maria Sousa"
    told = [{"id": 1, "context": text, "question": "Who came along?", "answer": "Carl Lund"}]
    dataset = write(tmp_path / "moves.jsonl", told)
    words = ["--dataset", dataset]
    for name, context in (("names", names), ("first-words", text[:90])):
        words += [
            "--predictions",
            write(tmp_path / f"{name}.jsonl", [{"id": 1, "context": context}]),
        ]
    finished = cbench("run", *words)
    said = [line for line in finished.stdout.splitlines() if "contexts are names" in line]
    assert [line.partition(":")[0] for line in said] == ["names"]
