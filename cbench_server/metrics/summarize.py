"""Rows in, summary out: each metric over the rows of each system."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from cbench_server.metrics.accumulate import Accumulator, Incremental, Values
from cbench_server.metrics.columnar import Columnar, columns_for
from cbench_server.metrics.columns import Columns
from cbench_server.results import EvalRow, Summary
from cbench_server.types import Metric


@runtime_checkable
class AcrossSystems(Protocol):
    """A metric that compares systems, once each has its own values."""

    def across(
        self, summary: Mapping[str, Mapping[str, float | None]]
    ) -> Mapping[str, Mapping[str, float | None]]:
        """Return further values for each system."""
        ...


class Summarizer:
    """Takes the rows of a run one at a time, in any order.

    Metrics over columns share about 80 bytes a row, and cost nothing until
    `result`. One that only offers `compute` needs all its rows at the end, so
    they are kept for it.
    """

    def __init__(self, metrics: Sequence[Metric], systems: Iterable[str] = ()) -> None:
        self._metrics = metrics
        self._systems: dict[str, _SystemRows] = {}
        for system in systems:
            self._systems[system] = _SystemRows(metrics)

    def add(self, row: EvalRow) -> None:
        """Take one row; a system that was not named at the start comes after those that were."""
        rows = self._systems.get(row.system)
        if rows is None:
            rows = self._systems[row.system] = _SystemRows(self._metrics)
        rows.add(row)

    def result(self) -> Summary:
        """Return {system: {key: value}}, the keys in the order of the metrics."""
        summary: Summary = {system: rows.result() for system, rows in self._systems.items()}
        for metric in self._metrics:
            if isinstance(metric, AcrossSystems):
                for system, values in metric.across(summary).items():
                    summary[system].update(values)
        return summary


class _SystemRows:
    """What the metrics keep of one system's rows."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        columnar = [metric for metric in metrics if isinstance(metric, Columnar)]
        self._columns: Columns | None = columns_for(columnar) if columnar else None
        self._accumulators: dict[int, Accumulator] = {
            place: metric.accumulate() if isinstance(metric, Incremental) else _Collected(metric)
            for place, metric in enumerate(metrics)
            if not isinstance(metric, Columnar)
        }

    def add(self, row: EvalRow) -> None:
        if self._columns is not None:
            self._columns.add(row)
        for accumulator in self._accumulators.values():
            accumulator.add(row)

    def result(self) -> Values:
        # Here, since numpy takes memory that a daemon without finished runs need not spend.
        from cbench_server.metrics.frame import Frame

        frame = None if self._columns is None else Frame(self._columns)
        values: Values = {}
        for place, metric in enumerate(self._metrics):
            if frame is not None and isinstance(metric, Columnar):
                values.update(metric.over(frame))
            else:
                values.update(self._accumulators[place].result())
        return values


class _Collected:
    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._rows: list[EvalRow] = []

    def add(self, row: EvalRow) -> None:
        self._rows.append(row)

    def result(self) -> Values:
        return dict(self._metric.compute(self._rows))


def summarize(
    rows: Iterable[EvalRow], metrics: Sequence[Metric], systems: Iterable[str] = ()
) -> Summary:
    """Summarise rows, which are read once; `systems` fixes the order, and may have no rows."""
    summarizer = Summarizer(metrics, systems)
    for row in rows:
        summarizer.add(row)
    return summarizer.result()
