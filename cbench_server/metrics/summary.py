"""Summary of a run: each metric over the rows of each system."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from numbers import Real
from typing import Any

from cbench_server.errors import contained, said, storable
from cbench_server.metrics.protocol import FrameMetric, Values, columns_for, framed
from cbench_server.metrics.stats.columns import Columns
from cbench_server.metrics.stats.estimate import SUFFIXES, base_key
from cbench_server.results import EvalRow, Summary
from cbench_server.types import Metric, ScoreInfo

_BATCH = 1000
_LONGEST_FAILURE = 1000


@dataclass(frozen=True)
class Summarized:
    """The summary of a run, and what to know of it."""

    summary: Summary
    headlines: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The scores that count for each system; systems with different ones are not ranked."""
    failures: dict[str, str] = field(default_factory=dict)
    """Metrics that gave nothing, or a part only, and why."""


class Summarizer:
    """Takes the rows of a run, in any order.

    Metrics share about 90 bytes per row, and cost nothing until `result`. One
    that only has `compute` needs all its rows at the end, so they are kept for
    it. `scores` is what is known of the scores, by name.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        systems: Iterable[str] = (),
        scores: Mapping[str, ScoreInfo] | None = None,
    ) -> None:
        self._metrics = [framed(metric) for metric in metrics]
        self._scores = scores or {}
        self._systems = {system: self._new_columns() for system in systems}
        self.taken = 0
        """How many rows."""

    def _new_columns(self) -> Columns:
        return columns_for(self._metrics)

    def extend(self, rows: Sequence[EvalRow]) -> None:
        """Take rows; a system that was not named at the start comes after those that were."""
        self.taken += len(rows)
        for system in dict.fromkeys([row.system for row in rows]):
            if system not in self._systems:
                self._systems[system] = self._new_columns()
            self._systems[system].extend([row for row in rows if row.system == system])

    def result(self, unranked: Collection[str] = ()) -> Summarized:
        """Return {system: {key: value}}, the keys in the order of the metrics.

        A metric that raises, or gives what is not a number, costs only itself.
        Systems that are `unranked` have no part in what compares systems.
        """
        # Here, since numpy takes memory that a daemon without finished runs need not spend.
        from cbench_server.metrics.stats.frame import Frame

        result = Summarized({})
        fields: dict[str, dict[str, str | None]] = {system: {} for system in self._systems}
        frames = {name: Frame(columns, self._scores) for name, columns in self._systems.items()}
        for system, frame in frames.items():
            result.headlines[system] = frame.headline
            values = result.summary[system] = Values()
            for metric in self._metrics:
                found = _attempt(result, metric, lambda m=metric, f=frame: m.over(f), _checked)
                _add(values, fields[system], metric, found)
        ranked = {name: each for name, each in result.summary.items() if name not in unranked}
        if len({result.headlines[name] for name in ranked}) == 1 and not self._is_cost(result):
            for metric in self._metrics:
                found = _attempt(result, metric, lambda m=metric: m.across(ranked), _checked_each)
                for system, values in found.items():
                    if system in result.summary:
                        _add(result.summary[system], fields[system], metric, values)
        return result

    def _is_cost(self, result: Summarized) -> bool:
        """Whether less of what counts is better, so that there is no rank by more of it."""
        names = {name for headline in result.headlines.values() for name in headline}
        return any(
            name in self._scores and not self._scores[name].higher_is_better for name in names
        )


def _attempt(result: Summarized, metric: FrameMetric, work: Any, check: Any) -> dict[str, Any]:
    """Have a metric do its work, and check what came of it; one that cannot is noted."""
    try:
        with contained(f'metric "{metric.name}"'):
            found: dict[str, Any] = check(result, metric, dict(work()))
        return found
    except Exception as error:
        _note(result, metric, said(error))
        return {}


def _checked_each(
    result: Summarized, metric: FrameMetric, of_systems: dict[Any, Any]
) -> dict[str, Any]:
    return {system: _checked(result, metric, dict(each)) for system, each in of_systems.items()}


def _checked(result: Summarized, metric: FrameMetric, values: dict[Any, Any]) -> Values:
    """Return the numbers among the values, as floats; what is undefined or infinite is None."""
    found = Values()
    for key, value in values.items():
        name = storable(str(key))
        if value is None:
            found[name] = None
        elif isinstance(value, Real) or _is_array_scalar(value):
            number = float(value)
            found[name] = number if math.isfinite(number) else None
            if found[name] is None:
                _note(result, metric, f'it gave {number} as "{name}", which is no value')
        else:
            why = f'it gave {value!r:.100} as "{name}"; a value should be a number or None'
            _note(result, metric, storable(why))
    return found


def _note(result: Summarized, metric: FrameMetric, why: str) -> None:
    """Keep why a metric lacks something, once, beside what else it lacks."""
    known = result.failures.get(metric.name, "")
    if why not in known and len(known) < _LONGEST_FAILURE:
        result.failures[metric.name] = f"{known}. {why}" if known else why


def _is_array_scalar(value: Any) -> bool:
    """Whether a value is a number of numpy, which need not be one of Python's."""
    is_numpy = any(
        base.__module__ == "numpy" and base.__name__ == "generic" for base in type(value).__mro__
    )
    return is_numpy and not isinstance(value, str | bytes)


def _add(
    values: Values, fields: dict[str, str | None], metric: FrameMetric, new: Mapping[str, Any]
) -> None:
    """Add a metric's values; a key that another metric has taken gets a name behind it.

    Keys about another score than the one of `fields`, by which they are taken, are named even
    where the values are the same, so that names do not depend on the rows.
    """
    taken = {
        base_key(key)
        for key in new
        if key in values
        and (values[key] != new[key] or metric.score_field not in (None, fields[base_key(key)]))
    }
    for key, value in new.items():
        base = base_key(key)
        if base in taken:
            suffix = key[len(base) :] if key.endswith(SUFFIXES) else ""
            key = f"{base}:{metric.score_field or metric.name}{suffix}"
        fields.setdefault(base_key(key), metric.score_field)
        values[key] = value


def summarize(
    rows: Iterable[EvalRow], metrics: Sequence[Metric], systems: Iterable[str] = ()
) -> Summary:
    """Summarise rows, which are read once; `systems` fixes the order, and may have no rows."""
    summarizer = Summarizer(metrics, systems)
    remaining = iter(rows)
    while batch := list(islice(remaining, _BATCH)):
        summarizer.extend(batch)
    return summarizer.result().summary
