"""The longest context that keeps 85 % of what short ones reach, as NoLiMa publishes it."""

from pathlib import Path

import pytest

from cbench_client import BenchClient, Server
from cbench_server.daemon.embedded import embedded
from cbench_server.metrics import EffectiveLength, summarize
from cbench_server.registry import registry
from cbench_server.results import EvalRow, Failure
from tests.datasets.test_records import FIXTURES


def _rows(by_length: dict[str, dict[str, list[float]]]) -> list[EvalRow]:
    rows: list[EvalRow] = []
    for length, by_pair in by_length.items():
        for pair, scores in by_pair.items():
            for depth, score in enumerate(scores):
                row = EvalRow("s", f"{pair}_b1_d{depth}", {"x": score}, 0, 0, ordinal=len(rows))
                row.dataset, row.primary_score = f"nolima:{length}", "x"
                rows.append(row)
    return rows


_SHORT = {
    "250": {"n1_onehop": [1, 1], "n2_twohop": [0, 1]},
    "500": {"n1_onehop": [1, 0], "n2_twohop": [1, 1]},
    "1k": {"n1_onehop": [1, 1], "n2_twohop": [0, 0]},
}


@pytest.mark.parametrize(
    ("longer", "length"),
    [
        ({"2k": {"n1_onehop": [1, 1], "n2_twohop": [1, 1]}, "4k": {"n1_onehop": [0]}}, 2000.0),
        # 85 % of 1.0 is kept by six rows in seven, and not by five in six.
        ({"8k": {"n1_onehop": [1, 1, 1, 1, 1, 1, 0]}}, 8000.0),
        ({"8k": {"n1_onehop": [1, 1, 1, 1, 1, 0]}}, 0.0),
        ({"hard-32k": {"n1_onehop": [1]}}, 0.0),
    ],
)
def test_the_base_is_the_best_of_short_lengths_by_pair(
    longer: dict[str, dict[str, list[float]]], length: float
) -> None:
    values = summarize(_rows({**_SHORT, **longer}), [EffectiveLength()])["s"]
    assert values["base_score"] == 1.0
    assert values["effective_length"] == length


def test_a_failed_row_counts_at_worst_and_short_lengths_are_needed() -> None:
    rows = _rows({**_SHORT, "2k": {"n1_onehop": [1, 1]}})
    rows[-1].failure, rows[-1].scores = Failure("system", "EXCEPTION", "no"), {}
    values = summarize(rows, [EffectiveLength()])["s"]
    assert values["effective_length"] == 0.0
    without = _rows({name: each for name, each in _SHORT.items() if name != "500"})
    values = summarize(without, [EffectiveLength()])["s"]
    assert values == {"base_score": None, "effective_length": None}


class _Reads:
    """Finds the name as long as the text is short."""

    name = "reads"

    def process(self, example: dict[str, str]) -> dict[str, str]:
        return {"response": example["context"] if len(example["context"]) < 6_000 else "nobody"}


def test_a_run_on_all_lengths_has_it(tmp_path: Path) -> None:
    lengths = ("250", "500", "1k", "32k")
    spec = {"datasets": [{"name": "nolima", "config": each} for each in lengths]}
    with (
        embedded(home=str(tmp_path), data_dir=str(FIXTURES)) as target,
        BenchClient(target) as client,
        Server([_Reads()]) as server,
    ):
        for _ in client.evaluate({**spec, "systems": [{"target": server.address}]}):
            pass
        (run,) = client.list()
        (summary,) = client.get(run.run_id).summaries
    registry.data_dir = ""
    assert summary.metrics["base_score"] == 1.0
    assert summary.metrics["effective_length"] >= 1000.0
