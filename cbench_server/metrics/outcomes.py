"""Outcomes of a row: scored, failed, unscored or not applicable, for a score that counts.

The one place that decides which. A row is *scored* if it has the score;
*failed* if its system, the reader or the way there failed, which counts as the
score's worst value; *unscored* if we, an evaluator or a judge failed; and *not
applicable* if the example cannot have the score, whichever system it is.

A system that never returns a response is judged by the answers that its
contexts retain. One response on any row makes it a system that answers, and its
rows without a response count as the worst value. So does the score that counts
where an evaluator gives it to a context, as one that someone chose may be.
"""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum

from cbench_server.results import RETENTION, EvalRow
from cbench_server.types import ScoreInfo

# A failed row counts against a system only where the system's side failed.
_SYSTEM_SIDE = frozenset({"system", "transport", "reader"})


class Outcome(IntEnum):
    """What became of a row, as far as one score goes."""

    SCORED = 0
    FAILED = 1
    UNSCORED = 2
    NOT_APPLICABLE = 3
    NO_RESPONSE = 4
    """There is a context and no response: scored at worst, if the system ever responds."""


def outcome_of(row: EvalRow, score: str) -> Outcome:
    """Tell what became of a row, taken by itself."""
    if score in row.not_applicable:
        return Outcome.NOT_APPLICABLE
    if row.failure is not None:
        return Outcome.FAILED if is_system_failure(row) else Outcome.UNSCORED
    if math.isfinite(row.scores.get(score, math.nan)):
        return Outcome.SCORED
    if is_context_only(row) and score != RETENTION and not row.evaluator_failures:
        return Outcome.NO_RESPONSE
    return Outcome.UNSCORED


def is_context_only(row: EvalRow) -> bool:
    """Whether only retention can score a row; older rows say so by their score."""
    return row.has_retention_only or row.primary_score == RETENTION


class Responses:
    """Whether a system ever responds, as far as its rows tell; failed ones do not."""

    __slots__ = ("_has_context", "has_response")

    def __init__(self) -> None:
        self.has_response = False
        self._has_context = False

    def see(self, row: EvalRow) -> None:
        """Take note of a row."""
        if row.failure is None:
            if is_context_only(row):
                self._has_context = True
            else:
                self.has_response = True

    @property
    def retains_only(self) -> bool:
        """Whether the system returned contexts, and not one response."""
        return self._has_context and not self.has_response


def worst_value(score: ScoreInfo | None) -> float | None:
    """Return what a score is at worst; None if it is not known.

    A score of which nothing is known is taken to lie between 0 and 1.
    """
    if score is None:
        return 0.0
    return score.worst if score.worst is not None or not score.higher_is_better else 0.0


def score_infos(datasets: Iterable[Mapping[str, object]]) -> dict[str, ScoreInfo]:
    """Read what the record of a run says of the scores of its datasets."""
    found: dict[str, ScoreInfo] = {}
    for dataset in datasets:
        announced = dataset.get("scores")
        if isinstance(announced, Mapping):
            for name, said in announced.items():
                found[name] = ScoreInfo(name, "", said["higher_is_better"], said["worst"])
    return found


def is_system_failure(row: EvalRow) -> bool:
    """Whether the row failed on the side of the system, its reader or the way there."""
    return row.failure is not None and row.failure.origin in _SYSTEM_SIDE


def is_timeout(row: EvalRow) -> bool:
    """Whether the system was still at work when its time was over."""
    failure = row.failure
    if failure is None or failure.reason != "DEADLINE_EXCEEDED":
        return False
    return failure.origin in ("system", "transport")
