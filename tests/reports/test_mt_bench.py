"""Answers for MT-Bench's own judge, in the form that FastChat reads."""

import json
from pathlib import Path
from typing import Any

from cbench_client import Server
from tests.datasets.test_records import FIXTURES
from tests.datasets.test_runs import cbench

__all__ = ["cbench"]


class _Talker:
    name = "talker"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        said = [f"reply to {turn['content'][:5]}" for turn in example["turns"]]
        return {**example, "response": said[-1], "turn_responses": said}


def test_both_replies_go_to_fastchat(cbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with Server([_Talker()]) as server:
        run = cbench(
            *("run", "--system", server.address, "--dataset", "mt-bench", "--data-dir", FIXTURES)
        )
    assert run.returncode == 0, run.stderr
    out = tmp_path / "talker.jsonl"
    exported = cbench("export", "last", "--format", "mt-bench", "-o", out)
    assert exported.returncode == 0, exported.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    (source,) = (FIXTURES / "HuggingFaceH4/mt_bench_prompts").rglob("*.jsonl")
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    assert [line["question_id"] for line in lines] == [row["prompt_id"] for row in rows]
    assert {line["model_id"] for line in lines} == {"talker"}
    assert len({line["answer_id"] for line in lines}) == len(lines)
    for line, row in zip(lines, rows, strict=True):
        (choice,) = line["choices"]
        assert choice["index"] == 0
        assert choice["turns"] == [f"reply to {prompt[:5]}" for prompt in row["prompt"]]
