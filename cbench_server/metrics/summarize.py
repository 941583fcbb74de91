"""Rows in, summary out: each metric over the rows of each system."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from cbench_server.metrics.accumulate import Accumulator, Incremental, Values
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

    Built-in metrics keep some tens of bytes a row. One that only offers
    `compute` needs all its rows at the end, so they are kept for it.
    """

    def __init__(self, metrics: Sequence[Metric], systems: Iterable[str] = ()) -> None:
        self._metrics = metrics
        self._systems: dict[str, list[Accumulator]] = {}
        for system in systems:
            self._start(system)

    def add(self, row: EvalRow) -> None:
        """Take one row; a system that was not named at the start comes after those that were."""
        accumulators = self._systems.get(row.system)
        if accumulators is None:
            accumulators = self._start(row.system)
        for accumulator in accumulators:
            accumulator.add(row)

    def result(self) -> Summary:
        """Return {system: {key: value}}, the keys in the order of the metrics."""
        summary: Summary = {system: {} for system in self._systems}
        for system, accumulators in self._systems.items():
            for accumulator in accumulators:
                summary[system].update(accumulator.result())
        for metric in self._metrics:
            if isinstance(metric, AcrossSystems):
                for system, values in metric.across(summary).items():
                    summary[system].update(values)
        return summary

    def _start(self, system: str) -> list[Accumulator]:
        accumulators: list[Accumulator] = [
            metric.accumulate() if isinstance(metric, Incremental) else _Collected(metric)
            for metric in self._metrics
        ]
        self._systems[system] = accumulators
        return accumulators


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
