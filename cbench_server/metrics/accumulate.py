"""How a metric takes rows one at a time, so that no run has to fit in memory."""

import math
from array import array
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from cbench_server.results import EvalRow

Values = dict[str, float | None]

# A failed row counts against a system only where the system's side failed.
_SYSTEM_SIDE = frozenset({"system", "transport", "reader"})


class Accumulator(Protocol):
    """Takes the rows of one system, in any order."""

    def add(self, row: EvalRow) -> None:
        """Take one row."""
        ...

    def result(self) -> Values:
        """Return the metric's values over the rows so far."""
        ...


@runtime_checkable
class Incremental(Protocol):
    """A metric that need not see all rows at once."""

    def accumulate(self) -> Accumulator:
        """Start over, with no rows."""
        ...


def compute(metric: Incremental, rows: Iterable[EvalRow]) -> Values:
    """Run the rows through a fresh accumulator."""
    accumulator = metric.accumulate()
    for row in rows:
        accumulator.add(row)
    return accumulator.result()


def score_of(row: EvalRow, score_field: str | None) -> float | None:
    """Return the named score, or the row's primary one; None if the row lacks it."""
    return row.score if score_field is None else row.scores.get(score_field)


def is_system_failure(row: EvalRow) -> bool:
    """Whether the row failed on the side of the system, its reader or the way there."""
    return row.failure is not None and row.failure.origin in _SYSTEM_SIDE


def mean(values: "array[float]", count: int | None = None) -> float | None:
    """Return the sum over `count` (by default, of the values), whatever their order."""
    count = len(values) if count is None else count
    return math.fsum(values) / count if count else None
