"""`cbench rescore` and `cbench run --reuse`."""

import json
from pathlib import Path

from tests.cli.conftest import Cbench, complaint


def _json(cbench: Cbench, *args: object) -> dict[str, object]:
    finished = cbench(*args, "--output", "json")
    assert finished.returncode == 0, finished.stderr
    document: dict[str, object] = json.loads(finished.stdout)
    return document


def test_a_run_is_scored_anew_and_knows_its_parent(cbench: Cbench, tmp_path: Path) -> None:
    parent = _json(cbench, "run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "4")
    references = tmp_path / "corrected.jsonl"
    references.write_text(json.dumps({"id": "mini-qa-001", "answer": "nowhere to be found"}) + "\n")
    child = _json(cbench, "rescore", "last", "--references", references)
    assert child["parent_run_id"] == parent["run_id"]
    assert child["progress"] == {"identity": {"completed": 4, "failed": 0, "reused": 4}}
    assert child["summary"]["identity"]["num_scored"] == 3  # type: ignore[index]
    table = cbench("show", child["run_id"]).stdout
    assert f"rescored from {parent['run_id']}" in table, table


def test_references_that_correct_nothing_are_named_and_a_table_corrects_numbers(
    cbench: Cbench, tmp_path: Path
) -> None:
    examples = tmp_path / "numbered.jsonl"
    lines = [{"id": n, "context": f"It is w{n}.", "answer": f"w{n}"} for n in range(3)]
    examples.write_text("\n".join(map(json.dumps, lines)))
    _json(cbench, "run", "--builtin", "identity", "--dataset", examples)
    references = tmp_path / "corrected.csv"
    references.write_text("id,answer\n1,It\n8,gone\n9,gone\n")
    finished = cbench("rescore", "last", "--references", references)
    assert finished.returncode == 0, finished.stderr
    assert "2 of 3 references correct nothing, for no example has their id: 8, 9" in finished.stdout
    one = json.loads(cbench("show", "last", "--example", "1", "--output", "json").stdout)
    assert one[0]["original"]["answer"] == "It"


def test_references_that_might_be_for_either_of_two_examples_are_refused(
    cbench: Cbench, tmp_path: Path
) -> None:
    examples = tmp_path / "mixed.jsonl"
    lines = [{"id": id_, "context": "It is x.", "answer": "x"} for id_ in (1, "1")]
    examples.write_text("\n".join(map(json.dumps, lines)))
    _json(cbench, "run", "--builtin", "identity", "--dataset", examples)
    references = tmp_path / "corrected.csv"
    references.write_text("id,answer\n1,It\n")
    finished = cbench("rescore", "last", "--references", references)
    assert finished.returncode == 1
    assert "cannot be told which one" in finished.stderr


def test_reuse_is_counted_and_shown(cbench: Cbench) -> None:
    run = ("run", "--builtin", "identity", "--dataset", "mini-qa", "--reuse")
    assert cbench(*run, "-n", "4").returncode == 0
    finished = cbench(*run, "-n", "6")
    assert finished.returncode == 0, finished.stderr
    assert "4 of 6 answers were taken from earlier runs" in finished.stdout


def test_a_judge_setting_without_a_judge_is_refused(cbench: Cbench) -> None:
    assert cbench("run", "--builtin", "identity", "--dataset", "mini-qa", "-n", "1").returncode == 0
    finished = cbench("rescore", "last", "--judge-model", "m")
    assert finished.returncode == 2
    assert "--judge-model needs --judge-url" in complaint(finished)
