"""Metrics over columns: all of a system's share one set, filled row by row."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cbench_server.metrics.accumulate import Values
from cbench_server.metrics.columns import Columns
from cbench_server.results import EvalRow

if TYPE_CHECKING:
    from cbench_server.metrics.frame import Frame


@runtime_checkable
class Columnar(Protocol):
    """A metric that needs no more of a row than its columns.

    One that has a `score_field` is given that score as a column.
    """

    def over(self, frame: "Frame") -> Values:
        """Return the metric's values over all rows of a system."""
        ...


def columns_for(metrics: Iterable[object]) -> Columns:
    """Start columns with the scores that the metrics read."""
    return Columns(dict.fromkeys(getattr(metric, "score_field", None) for metric in metrics))


def compute(metric: Columnar, rows: Iterable[EvalRow]) -> Values:
    """Run the rows through fresh columns."""
    from cbench_server.metrics.frame import Frame

    columns = columns_for([metric])
    for row in rows:
        columns.add(row)
    return metric.over(Frame(columns))
