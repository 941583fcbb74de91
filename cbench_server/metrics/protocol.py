"""The metric protocol: `over(frame)`, the values of one system from the columns of its rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cbench_server.contract import optional_method
from cbench_server.metrics.stats.columns import Columns, Extra
from cbench_server.results import EvalRow
from cbench_server.types import Metric

if TYPE_CHECKING:
    from cbench_server.metrics.stats.frame import Frame

Values = dict[str, float | None]
SystemValues = Mapping[str, Mapping[str, float | None]]

_ROWS = Extra(lambda row: row, list)


@runtime_checkable
class FrameMetric(Protocol):
    """A metric that reads columns, so that no run has to fit in memory.

    All metrics of a system share one frame, which has the score named by
    `score_field` (None for each row's primary one) and the `extras`.
    """

    name: str
    score_field: str | None = None
    extras: tuple[Extra, ...] = ()
    every_score: bool = False
    """Whether the frame must have all scores there are."""

    def over(self, frame: "Frame") -> Values:
        """Return the metric's values over all rows of a system."""
        ...

    def across(self, summary: SystemValues) -> SystemValues:
        """Return further values for each system, once every system has its own."""
        return {}

    def compute(self, rows: Sequence[EvalRow]) -> Values:
        """Return the metric's values over rows that fit in memory."""
        # Here, since numpy takes memory that a daemon without finished runs need not spend.
        from cbench_server.metrics.stats.frame import Frame

        columns = columns_for([self])
        columns.extend(rows)
        return self.over(Frame(columns))


def framed(metric: Metric) -> FrameMetric:
    """Return a metric that reads a frame; one that only has `compute` is given all its rows."""
    return metric if isinstance(metric, FrameMetric) else _Computed(metric)


def columns_for(metrics: Iterable[FrameMetric]) -> Columns:
    """Start columns with the scores and the extras that the metrics read."""
    chosen = [*metrics]
    return Columns(
        dict.fromkeys(metric.score_field for metric in chosen),
        dict.fromkeys(extra for metric in chosen for extra in metric.extras),
        every_score=any(metric.every_score for metric in chosen),
    )


class _Computed(FrameMetric):
    """A user's metric, which takes rows; they are kept for it."""

    extras = (_ROWS,)

    def __init__(self, metric: Metric) -> None:
        self.name = metric.name
        self._metric = metric

    def over(self, frame: "Frame") -> Values:
        return dict(self._metric.compute(frame.objects(_ROWS)))

    def across(self, summary: SystemValues) -> SystemValues:
        across = optional_method(self._metric, "across")
        return across(summary) if across else {}
