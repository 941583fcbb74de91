"""Answers for LongMemEval's own evaluation, under the ids that the benchmark has."""

import json
from pathlib import Path

import pytest

from cbench_client import Server
from tests.datasets.test_records import FIXTURES
from tests.datasets.test_runs import cbench

__all__ = ["cbench"]

SOURCE = FIXTURES / "xiaowu0162/longmemeval-cleaned/longmemeval_s_cleaned.json"


class _Memory:
    name = "rememberer"

    def reset(self) -> None: ...

    def ingest(self, turns: list[dict[str, str]]) -> None: ...

    def query(self, question: str) -> str:
        return f"about {question}"


@pytest.mark.parametrize(
    "dataset",
    ["longmemeval", f"longmemeval={SOURCE}", f"mine={SOURCE}"],
    ids=["mirror", "file", "named"],
)
def test_hypotheses_have_the_benchmarks_ids(cbench, tmp_path: Path, dataset: str) -> None:  # type: ignore[no-untyped-def]
    rows = json.loads(SOURCE.read_text())
    asked = {row["question_id"]: row["question"].strip() for row in rows}
    with Server(memory_systems=[_Memory]) as server:
        run = cbench(
            *("memory", "run", "--system", server.address, "--dataset", dataset),
            *("--data-dir", FIXTURES),
        )
    assert run.returncode == 0, run.stderr
    out = tmp_path / "hypotheses.jsonl"
    exported = cbench("export", "last", "--format", "longmemeval", "-o", out)
    assert exported.returncode == 0, exported.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert any(line["question_id"].endswith("_abs") for line in lines)
    for line in lines:
        assert line["hypothesis"] == f"about {asked[line['question_id']]}"
