"""Frame: the columns at the end of a run, in order, with their clusters."""

from array import array
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbench_server.metrics.stats.bootstrap import bootstrap, sums_by_cluster
from cbench_server.metrics.stats.columns import (
    ALONE,
    DONE,
    FAILED_BY_SYSTEM,
    INGESTED,
    RETRIED,
    TIMED_OUT,
    UNKNOWN,
    Columns,
    Extra,
)
from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.metrics.stats.intervals import Codes, Floats, mean_of, percentile_of
from cbench_server.metrics.stats.scored_rows import Flags, ScoredRows, scored_rows
from cbench_server.results import RETENTION
from cbench_server.types import ScoreInfo


class Frame:
    """The rows of one system, by ordinal and repeat, so that nothing depends on who was fast."""

    def __init__(self, columns: Columns, infos: Mapping[str, ScoreInfo] | None = None) -> None:
        """`infos` is what is known of the scores, by name."""
        self._columns = columns
        self.infos = infos or {}
        self._order = np.lexsort((_view(columns.repeat), _view(columns.ordinal)))
        outcome = self.column(columns.outcome)
        self.has_answer: Flags = outcome == DONE
        self.timed_out: Flags = outcome == TIMED_OUT
        self.failed_by_system: Flags = outcome >= FAILED_BY_SYSTEM
        self.dataset: Codes = self.column(columns.dataset)
        self.datasets = dict(columns.datasets)
        self.ordinal: Codes = self.column(columns.ordinal)
        self.has_repeats = bool(self.column(columns.repeat).any())
        self.clusters = self._clusters()

    # The rest is put in order when it is wanted, so that a long run needs it once only.
    input_tokens = property(lambda self: self.column(self._columns.input_tokens))
    output_tokens = property(lambda self: self.column(self._columns.output_tokens))
    context_in = property(lambda self: self.column(self._columns.context_in))
    context_out = property(lambda self: self.column(self._columns.context_out))
    latency = property(lambda self: self.column(self._columns.latency))
    queue_time = property(lambda self: self.column(self._columns.queue_time))
    scoring_time = property(lambda self: self.column(self._columns.scoring_time))
    reader_time = property(lambda self: self.column(self._columns.reader_time))

    handler = property(lambda self: self.column(self._columns.handler))

    @property
    def has_latency(self) -> Flags:
        """Rows whose time says something of the system: a call that was late has taken its time.

        Predictions and controls are not called, and have none, nor has a question about a
        conversation that did not go in.
        """
        is_timed: Flags = (self.has_answer | self.timed_out) & (self.latency > 0)
        return is_timed

    @property
    def has_handler_time(self) -> Flags:
        """Rows of which the system's SDK says what its code took."""
        flags: Flags = ~np.isnan(self.handler)
        return flags

    @cached_property
    def is_alone(self) -> Flags:
        """Rows that were timed while nothing else was called."""
        return self._has(ALONE)

    @cached_property
    def timed(self) -> Flags:
        """Rows whose times are the system's own: those timed alone; in a run without them, all."""
        alone = self.has_latency & self.is_alone
        return alone if alone.any() else self.has_latency

    @property
    def was_retried_alone(self) -> Flags:
        """Rows that were late among others, and tried again alone."""
        return self._has(RETRIED)

    @property
    def was_ingested_alone(self) -> Flags:
        """Rows about conversations that were put in while nothing else was called."""
        return self._has(INGESTED)

    def _has(self, flag: int) -> Flags:
        flags: Flags = (self.column(self._columns.flags) & flag).astype(np.bool_)
        return flags

    @property
    def has_context(self) -> Flags:
        """Rows whose system returned a context."""
        has_context: Flags = self.has_answer & (self.context_in != UNKNOWN)
        return has_context

    def __len__(self) -> int:
        return len(self._order)

    @property
    def everything(self) -> Flags:
        """All rows."""
        return np.ones(len(self), np.bool_)

    @property
    def retains_only(self) -> bool:
        """Whether the system returned contexts, and not one response."""
        return self._columns.responses.retains_only

    @property
    def headline(self) -> tuple[str, ...]:
        """The scores that count for this system: one on each row, the same for every system
        of its kind."""
        if self.retains_only:
            return (RETENTION,)
        names = self._columns.score_names
        codes = self.column(names.codes)
        return tuple(sorted(name for name, code in names.names.items() if name and code in codes))

    def scored(self, field: str | None) -> ScoredRows:
        """Return the score that counts, or the one named, with what became of every row."""
        columns = self._columns
        column, names = columns.scores[field], dict[str, int]()
        codes: Codes = np.zeros(len(self), np.int64)
        if field is None and self.retains_only and columns.retention:
            column, names = columns.retention, {RETENTION: 0}
        elif field is None:
            names, codes = columns.score_names.names, self.column(columns.score_names.codes)
        else:
            names = {field: 0}
        return scored_rows(
            self.column(column.values),
            self.column(column.outcomes),
            codes,
            {name: code for name, code in names.items() if (codes == code).any()},
            self.infos,
            responds=not self.retains_only,
        )

    def every_score(self) -> dict[str, Floats]:
        """Return all scores there are, undefined on rows that lack them."""
        return {name: self.column(values) for name, values in (self._columns.every or {}).items()}

    def cost_usd(self) -> tuple[Floats, Flags]:
        """Return the price of each row, and where one is known."""
        prices = np.full(len(self), np.nan)
        prices[_view(self._columns.priced)] = _view(self._columns.cost_usd)
        prices = prices[self._order]
        return prices, ~np.isnan(prices)

    def mean(self, values: Any, where: Flags, *, in_unit: bool = False) -> Estimate:
        """Estimate the mean of some rows."""
        chosen, clusters = self._choose([values], where)
        return mean_of(chosen[0], clusters, in_unit=in_unit)

    def ratio(self, over: Any, under: Any, where: Flags, *, saved: bool = False) -> Estimate:
        """Estimate a ratio of sums over some rows, or what is `saved`: one minus that."""
        chosen, clusters = self._choose([over, under], where)
        if not chosen[1].sum():
            return Estimate()

        def statistic(sums: Floats) -> Floats:
            ratio = sums[:, 0] / sums[:, 1]
            return 1 - ratio if saved else ratio

        return bootstrap(sums_by_cluster(chosen, clusters), statistic)

    def percentiles(self, values: Any, where: Flags, *percents: int) -> list[Estimate]:
        """Estimate percentiles of some rows, by nearest rank."""
        ordered = np.sort(values[where].astype(np.float64))
        return [percentile_of(ordered, percent) for percent in percents]

    def first_of_groups(self, where: Flags) -> Flags:
        """Choose one row of each group, such as a conversation, and repeat."""
        places = np.flatnonzero(where)
        group = self.column(self._columns.group)[places]
        repeat = self.column(self._columns.repeat)[places]
        _, first = np.unique(np.stack([group, repeat]), axis=1, return_index=True)
        chosen: Flags = np.zeros(len(self), np.bool_)
        chosen[places[first]] = True
        return chosen

    def by_example(self, flags: Flags, where: Flags) -> tuple[Codes, Codes, Codes]:
        """Return, for each example, its rows, those with the flag, and its cluster."""
        _, first, example = np.unique(self.ordinal[where], return_index=True, return_inverse=True)
        clusters = np.arange(len(self)) if self.clusters is None else self.clusters
        count = len(first)
        return (
            np.bincount(example, minlength=count),
            np.bincount(example, flags[where], count).astype(np.int64),
            clusters[where][first],
        )

    def mean_by_example(self, values: list[float], clusters: Codes) -> Estimate:
        """Estimate the mean of a value that each example has, given their clusters."""
        is_alone = not self._columns.groups
        codes = None if is_alone else np.unique(clusters, return_inverse=True)[1]
        return mean_of(np.array(values), codes, in_unit=True)

    def _choose(self, columns: list[Any], where: Flags) -> tuple[list[Floats], Codes | None]:
        chosen = [column[where].astype(np.float64) for column in columns]
        if self.clusters is None:
            return chosen, None
        _, clusters = np.unique(self.clusters[where], return_inverse=True)
        return chosen, clusters

    def _clusters(self) -> Codes | None:
        """Number what varies together: the rows of a group, else the repeats of an example."""
        group = self.column(self._columns.group)
        if not self.has_repeats and not self._columns.groups:
            return None
        alone = self.ordinal if self.has_repeats else np.arange(len(self))
        numbers = np.where(group == UNKNOWN, alone + len(self._columns.groups), group)
        clusters: Codes = np.unique(numbers, return_inverse=True)[1]
        return clusters

    def extra(self, extra: Extra) -> NDArray[Any]:
        """Return a further column of numbers."""
        return self.column(self._columns.extras[extra])

    def labels(self, extra: Extra) -> tuple[dict[str, int], Codes]:
        """Return the code of each label, and the codes of the rows."""
        labels = self._columns.extras[extra]
        return labels.names, self.column(labels.codes)

    def objects(self, extra: Extra) -> list[Any]:
        """Return what was kept whole."""
        kept = self._columns.extras[extra]
        return [kept[place] for place in self._order]

    def kept(self, extra: Extra) -> Any:
        """Return what a further column keeps in a store of its own."""
        return self._columns.extras[extra]

    def column(self, column: "array[Any]") -> NDArray[Any]:
        """Put what was kept of each row, as it came, into the order of the frame."""
        return _view(column)[self._order]


def _view(column: "array[Any]") -> NDArray[Any]:
    # Short-lived: an array that is being viewed cannot take further rows.
    return np.asarray(column)
