"""Summary of a run: each metric over the rows of each system."""

from collections.abc import Iterable, Sequence
from itertools import islice

from cbench_server.metrics.protocol import FrameMetric, Values, columns_for, framed
from cbench_server.metrics.stats.columns import Columns
from cbench_server.results import EvalRow, Summary
from cbench_server.types import Metric

_BATCH = 1000


class Summarizer:
    """Takes the rows of a run, in any order.

    Metrics share about 80 bytes per row, and cost nothing until `result`. One
    that only has `compute` needs all its rows at the end, so they are kept for
    it.
    """

    def __init__(self, metrics: Sequence[Metric], systems: Iterable[str] = ()) -> None:
        self._metrics = [framed(metric) for metric in metrics]
        self._systems = {system: columns_for(self._metrics) for system in systems}

    def extend(self, rows: Sequence[EvalRow]) -> None:
        """Take rows; a system that was not named at the start comes after those that were."""
        for system in dict.fromkeys([row.system for row in rows]):
            if system not in self._systems:
                self._systems[system] = columns_for(self._metrics)
            self._systems[system].extend([row for row in rows if row.system == system])

    def result(self) -> Summary:
        """Return {system: {key: value}}, the keys in the order of the metrics."""
        summary: Summary = {
            system: _values(self._metrics, columns) for system, columns in self._systems.items()
        }
        for metric in self._metrics:
            for system, values in metric.across(summary).items():
                summary[system].update(values)
        return summary


def _values(metrics: Sequence[FrameMetric], columns: Columns) -> Values:
    # Here, since numpy takes memory that a daemon without finished runs need not spend.
    from cbench_server.metrics.stats.frame import Frame

    frame = Frame(columns)
    return {key: value for metric in metrics for key, value in metric.over(frame).items()}


def summarize(
    rows: Iterable[EvalRow], metrics: Sequence[Metric], systems: Iterable[str] = ()
) -> Summary:
    """Summarise rows, which are read once; `systems` fixes the order, and may have no rows."""
    summarizer = Summarizer(metrics, systems)
    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH)):
        summarizer.extend(batch)
    return summarizer.result()
