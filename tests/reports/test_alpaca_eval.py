"""AlpacaEval's own program: outputs for it, and its annotations as scores."""

import json
from pathlib import Path
from typing import Any

import pytest

from cbench_client import Server
from cbench_server.datasets.readers.alpaca_annotations import alpaca_annotations
from cbench_server.evaluators import AlpacaEval
from tests.datasets.test_records import FIXTURES
from tests.datasets.test_runs import cbench

__all__ = ["cbench"]


class _Writer:
    name = "writer"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": f"About this: {example['context'][:20]}"}


def test_outputs_go_to_alpaca_eval_and_its_annotations_come_back(cbench, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with Server([_Writer()]) as server:
        words = ["run", "--system", server.address, "--dataset", "alpaca-eval"]
        run = cbench(*words, "--data-dir", FIXTURES)
    assert run.returncode == 0, run.stderr
    assert "--format alpaca-eval" in run.stdout
    out = tmp_path / "outputs.json"
    exported = cbench("export", "last", "--format", "alpaca-eval", "-o", out)
    assert exported.returncode == 0, exported.stderr
    outputs = json.loads(out.read_text())
    rows = [
        json.loads(line)
        for line in (FIXTURES / "tatsu-lab/alpaca_eval/alpaca_eval/eval.jsonl")
        .read_text()
        .splitlines()
    ]
    assert [each["instruction"] for each in outputs] == [each["instruction"] for each in rows]
    assert {each["generator"] for each in outputs} == {"writer"}
    assert all(each["output"].startswith("About this: ") for each in outputs)
    annotations = tmp_path / "annotations.json"
    found = [
        {"instruction": each["instruction"], "preference": 1.75, "glm_preference": 0.6}
        for each in outputs
    ]
    annotations.write_text(json.dumps(found))
    rescored = cbench("rescore", "last", "--references", annotations)
    assert rescored.returncode == 0, rescored.stderr
    assert "alpaca_win_rate" in rescored.stdout
    lines = cbench("export", "last", "--format", "jsonl").stdout.splitlines()
    scores = [json.loads(line)["scores"] for line in lines]
    assert scores == [{"alpaca_win_rate": 0.75, "alpaca_lc_win_rate": 0.6}] * len(outputs)
    annotations.write_text(json.dumps([{"instruction": "Another.", "preference": 1}]))
    refused = cbench("rescore", "last", "--references", annotations)
    assert refused.returncode == 2
    assert "annotates no instruction of run" in refused.stderr


@pytest.mark.parametrize(
    ("preference", "score"),
    [(1, 0.0), (2, 1.0), (1.5, 0.5), (0, 0.5), (1.0000003633, 3.633e-7), (3, None), (None, None)],
)
def test_a_preference_is_a_win_a_draw_or_nothing(preference: Any, score: float | None) -> None:
    scores = AlpacaEval().score({"preference": preference}, {"response": "x"})
    assert scores.get("alpaca_win_rate") == (None if score is None else pytest.approx(score))


@pytest.mark.parametrize("text", ["[]", "{}", "[1]", '[{"instruction": "x"}]', "no JSON"])
def test_other_files_are_no_annotations(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)
    assert alpaca_annotations(file) is None
