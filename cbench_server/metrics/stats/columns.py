"""Columns of numbers for the rows of one system, so that no run has to fit in memory."""

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cbench_server.metrics.outcomes import (
    Outcome,
    Responses,
    is_system_failure,
    is_timeout,
    outcome_of,
)
from cbench_server.results import INGESTED_ALONE, RETENTION, RETRIED_ALONE, EvalRow

DONE, FAILED, FAILED_BY_SYSTEM, TIMED_OUT = range(4)
"""What became of a row; a timeout is a failure of the system, too."""

ALONE, RETRIED, INGESTED = 1, 2, 4
"""How a row came about: timed alone, tried again alone, its conversation put in alone, or
without a response."""

UNKNOWN = -1
"""Stands for no group, and for tokens of a context that was not returned."""


@dataclass(frozen=True)
class Extra:
    """A further column: what to take from each row, and what to keep it in.

    The store is an `array` of numbers, `Labels`, or a list for whole objects.
    """

    take: Callable[[EvalRow], Any]
    new_store: Callable[[], Any]


class Labels:
    """Texts of which few differ, kept as numbers."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.codes = array("i")

    def append(self, name: str) -> None:
        """Take the label of one row."""
        self.codes.append(self.names.setdefault(name, len(self.names)))


class ScoreColumn:
    """One score: its values, undefined where there is none, and what became of each row."""

    def __init__(self) -> None:
        self.values = array("d")
        self.outcomes = array("b")

    def extend(self, rows: Sequence[EvalRow], names: Sequence[str]) -> None:
        """Take the score of each row that goes by the name given for it."""
        values, outcomes = self.values, self.outcomes
        for row, name in zip(rows, names, strict=True):
            value = row.scores.get(name)
            is_plain = value is not None and row.failure is None and not row.not_applicable
            outcome = Outcome.SCORED if is_plain else outcome_of(row, name)
            if value is None or outcome != Outcome.SCORED:
                value = math.nan
            elif not math.isfinite(value):
                value, outcome = math.nan, Outcome.UNSCORED
            values.append(value)
            outcomes.append(outcome)


class Columns:
    """Takes rows in any order, and keeps about 95 bytes of each."""

    def __init__(
        self,
        score_fields: Iterable[str | None] = (None,),
        extras: Iterable[Extra] = (),
        *,
        every_score: bool = False,
    ) -> None:
        """`score_fields` are the scores to keep; None stands for the one that counts."""
        self.ordinal = array("q")
        self.repeat = array("i")
        self.dataset = array("i")
        self.group = array("i")
        self.outcome = array("b")
        self.input_tokens = array("q")
        self.output_tokens = array("q")
        self.context_in = array("q")
        self.context_out = array("q")
        self.latency = array("d")
        self.handler = array("f")
        """What the system's own code took, undefined where nobody says."""
        self.flags = array("b")
        self.queue_time = array("f")
        self.scoring_time = array("f")
        self.reader_time = array("f")
        self.scores = {field: ScoreColumn() for field in score_fields}
        self.score_names = Labels()
        """What the score is called that each row's dataset counts."""
        self.responses = Responses()
        self.retention = ScoreColumn() if None in self.scores else None
        """What counts instead for a system that never responds; None from its first response."""
        self.every: dict[str, array[float]] | None = {} if every_score else None
        """All scores there are, where they are wanted."""
        self.extras = {extra: extra.new_store() for extra in extras}
        # Few systems say what they cost: the price, and the place of its row.
        self.cost_usd = array("d")
        self.priced = array("q")
        self.datasets: dict[str, int] = {}
        self.groups: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self.ordinal)

    def extend(self, rows: Sequence[EvalRow]) -> None:
        """Take rows, column by column: a third of the time of taking them one by one."""
        if any(row.usage or row.cost_usd for row in rows):
            for place, row in enumerate(rows, len(self)):
                cost = row.total_cost_usd
                if cost is not None:
                    self.priced.append(place)
                    self.cost_usd.append(cost)
        datasets = self.datasets
        self.ordinal.extend([row.ordinal for row in rows])
        self.repeat.extend([row.repeat for row in rows])
        self.dataset.extend([datasets.setdefault(row.dataset, len(datasets)) for row in rows])
        self.group.extend([self._group(row) if row.group else UNKNOWN for row in rows])
        self.outcome.extend([_outcome(row) if row.failure else DONE for row in rows])
        self.input_tokens.extend([row.input_tokens for row in rows])
        self.output_tokens.extend([row.output_tokens for row in rows])
        contexts = [(row.context_tokens_in, row.context_tokens_out) for row in rows]
        self.context_in.extend([UNKNOWN if a is None or b is None else a for a, b in contexts])
        self.context_out.extend([UNKNOWN if a is None or b is None else b for a, b in contexts])
        self.latency.extend([row.latency for row in rows])
        handler = [row.handler_seconds for row in rows]
        self.handler.extend([math.nan if seconds is None else seconds for seconds in handler])
        self.flags.extend([_flags(row) if row.alone or row.marks else 0 for row in rows])
        self.queue_time.extend([row.queue_time for row in rows])
        self.scoring_time.extend([row.scoring_time for row in rows])
        self.reader_time.extend([row.reader_time for row in rows])
        if self.every is not None:
            self._extend_every(self.every, rows)
        for row in rows:
            self.score_names.append(row.primary_score)
        self._note_responses(rows)
        for field, column in self.scores.items():
            names = [row.primary_score for row in rows] if field is None else [field] * len(rows)
            column.extend(rows, names)
        for extra, store in self.extras.items():
            for row in rows:
                store.append(extra.take(row))

    def _note_responses(self, rows: Sequence[EvalRow]) -> None:
        if self.responses.has_response:
            return
        for row in rows:
            self.responses.see(row)
        if self.responses.has_response:
            self.retention = None
        elif self.retention is not None:
            self.retention.extend(rows, [RETENTION] * len(rows))

    def _extend_every(self, every: "dict[str, array[float]]", rows: Sequence[EvalRow]) -> None:
        before = len(self) - len(rows)
        for name in dict.fromkeys(name for row in rows for name in row.scores):
            if name not in every:
                every[name] = array("d", [math.nan]) * before
        for name, values in every.items():
            values.extend(
                [math.nan if row.failure else row.scores.get(name, math.nan) for row in rows]
            )

    def _group(self, row: EvalRow) -> int:
        return self.groups.setdefault((row.dataset, row.group), len(self.groups))


def _outcome(row: EvalRow) -> int:
    if row.failure is None:
        return DONE
    if not is_system_failure(row):
        return FAILED
    return TIMED_OUT if is_timeout(row) else FAILED_BY_SYSTEM


def _flags(row: EvalRow) -> int:
    marks = row.marks
    return (
        (ALONE if row.alone else 0)
        | (RETRIED if RETRIED_ALONE in marks else 0)
        | (INGESTED if INGESTED_ALONE in marks else 0)
    )
