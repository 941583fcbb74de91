"""The rows of one system as columns of numbers, so that no run has to fit in memory."""

import math
from array import array
from collections.abc import Iterable

from cbench_server.metrics.accumulate import is_system_failure, is_timeout, score_of
from cbench_server.results import EvalRow

DONE, FAILED, FAILED_BY_SYSTEM, TIMED_OUT = range(4)
"""What became of a row; a timeout is a failure of the system, too."""

UNKNOWN = -1
"""Stands for no group, and for tokens of a context that was not returned."""


class Columns:
    """Takes rows one at a time, in any order, and keeps about 80 bytes of each."""

    def __init__(self, score_fields: Iterable[str | None] = (None,)) -> None:
        """`score_fields` are the scores to keep; None stands for each row's primary one."""
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
        self.queue_time = array("f")
        self.scoring_time = array("f")
        self.reader_time = array("f")
        self.scores = {field: array("d") for field in score_fields}
        # Few systems say what they cost: the price, and the place of its row.
        self.cost_usd = array("d")
        self.priced = array("q")
        self.datasets: dict[str, int] = {}
        self.groups: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self.ordinal)

    def add(self, row: EvalRow) -> None:
        """Take one row."""
        cost = (row.usage or {}).get("cost_usd")
        if cost is not None:
            self.priced.append(len(self))
            self.cost_usd.append(cost)
        self.ordinal.append(row.ordinal)
        self.repeat.append(row.repeat)
        self.dataset.append(self.datasets.setdefault(row.dataset, len(self.datasets)))
        group = UNKNOWN
        if row.group:
            group = self.groups.setdefault((row.dataset, row.group), len(self.groups))
        self.group.append(group)
        self.outcome.append(_outcome(row))
        self.input_tokens.append(row.input_tokens)
        self.output_tokens.append(row.output_tokens)
        known = row.context_tokens_in is not None and row.context_tokens_out is not None
        self.context_in.append(row.context_tokens_in if known else UNKNOWN)  # type: ignore[arg-type]
        self.context_out.append(row.context_tokens_out if known else UNKNOWN)  # type: ignore[arg-type]
        self.latency.append(row.latency)
        self.queue_time.append(row.queue_time)
        self.scoring_time.append(row.scoring_time)
        self.reader_time.append(row.reader_time)
        for field, scores in self.scores.items():
            score = None if row.failure else score_of(row, field)
            scores.append(math.nan if score is None else score)


def _outcome(row: EvalRow) -> int:
    if row.failure is None:
        return DONE
    if not is_system_failure(row):
        return FAILED
    return TIMED_OUT if is_timeout(row) else FAILED_BY_SYSTEM
