"""The mean of a score on each dataset."""

from array import array
from collections.abc import Sequence

from cbench_server.metrics.accumulate import Accumulator, Values, compute, mean, score_of
from cbench_server.results import EvalRow


class PerDatasetBreakdown:
    """Gives `dataset:<tag>`: the mean over the rows that have the score, for every tag.

    Rows without a tag count under "unknown"; a dataset of which no row has
    the score gives None.
    """

    name = "per-dataset"
    description = "Mean of the primary score on each dataset."
    keys = ("dataset:<tag>",)

    def __init__(self, score_field: str | None = None) -> None:
        self.score_field = score_field

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        return compute(self, rows)

    def accumulate(self) -> Accumulator:
        return _PerDataset(self.score_field)


class _PerDataset:
    def __init__(self, score_field: str | None) -> None:
        self._score_field = score_field
        self._scores: dict[str, array[float]] = {}

    def add(self, row: EvalRow) -> None:
        scores = self._scores.setdefault(row.dataset or "unknown", array("d"))
        score = None if row.failure else score_of(row, self._score_field)
        if score is not None:
            scores.append(score)

    def result(self) -> Values:
        return {f"dataset:{tag}": mean(self._scores[tag]) for tag in sorted(self._scores)}
