"""Output that brings its scorer down: the worst value, with its reason, in every mean."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.metrics import MeanScore
from cbench_server.runs import local
from cbench_server.scoring import workers

sys.path.insert(0, str(Path(__file__).parent.parent / "scoring"))
import troublesome_evaluators as troublesome

EXAMPLES = [{"id": number, "context": "c", "answer": f"word{number}"} for number in range(4)]


class Dodger:
    """Knows the first answer, and would rather not be scored on the others."""

    name = "dodger"

    def __init__(self, trick: str) -> None:
        self.trick = trick

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": "word0" if example["id"] == 0 else self.trick}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give scorers less time and room than they have, so that the tests take neither."""
    monkeypatch.setenv("PYTHONPATH", str(Path(troublesome.__file__).parent))
    monkeypatch.setattr(local, "WorkerPool", partial(workers.WorkerPool, 2, 3.0))
    monkeypatch.setattr(workers, "MAX_BODY", 100_000)


@pytest.mark.parametrize(
    ("trick", "reason", "said"),
    [
        ("x" * 100_000, "OUTPUT_TOO_LARGE", "cannot be sent to a worker"),
        ("die", "OUTPUT_UNSCORABLE", "lost two workers"),
        ("hang", "OUTPUT_UNSCORABLE", "lost two workers"),
    ],
    ids=["too-large", "dies-twice", "takes-too-long"],
)
def test_a_scorer_that_is_brought_down_gives_the_worst_value(
    trick: str, reason: str, said: str
) -> None:
    result, honest = (
        evaluate(
            [Dodger(each)],
            EXAMPLES[:2],
            [troublesome.Broken()],
            [MeanScore()],
            progress=False,
            tokenizer=len,
        )
        for each in (trick, "I do not know")
    )
    failure = result.rows[1].evaluator_failures["broken"]
    assert (failure.origin, failure.reason) == ("system", reason)
    assert said in failure.message
    assert result.rows[1].scores == {"equal": 0.0}
    counts = ("num_scored", "num_failed", "num_unscored", "num_not_applicable")
    for key in ("mean_score", "mean_score_with_failures", "mean_score_worst_case", *counts):
        assert result.summary["dodger"][key] == honest.summary["dodger"][key], key
    assert result.summary["dodger"]["mean_score_with_failures"] == 0.5
