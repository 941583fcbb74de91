"""Outcomes of a row: its score, whether its system failed, whether it timed out."""

from cbench_server.results import EvalRow

# A failed row counts against a system only where the system's side failed.
_SYSTEM_SIDE = frozenset({"system", "transport", "reader"})


def score_of(row: EvalRow, score_field: str | None) -> float | None:
    """Return the named score, or the row's primary one; None if the row lacks it."""
    return row.score if score_field is None else row.scores.get(score_field)


def is_system_failure(row: EvalRow) -> bool:
    """Whether the row failed on the side of the system, its reader or the way there."""
    return row.failure is not None and row.failure.origin in _SYSTEM_SIDE


def is_timeout(row: EvalRow) -> bool:
    """Whether the system was still at work when its time was over."""
    failure = row.failure
    if failure is None or failure.reason != "DEADLINE_EXCEEDED":
        return False
    return failure.origin in ("system", "transport")
