"""How a metric takes rows one at a time, so that no run has to fit in memory.

The built-in metrics share one set of columns; a metric that reads other parts
of a row keeps what it needs in an accumulator of its own.
"""

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


def is_timeout(row: EvalRow) -> bool:
    """Whether the system was still at work when its time was over."""
    failure = row.failure
    if failure is None or failure.reason != "DEADLINE_EXCEEDED":
        return False
    return failure.origin in ("system", "transport")
