"""Incidents: what befell the scoring of a run without changing its rows, for its notes."""

from collections import Counter
from contextvars import ContextVar

Incidents = Counter[str]
"""How many pairs were scored again, by why."""

INCIDENTS: ContextVar[Incidents | None] = ContextVar("incidents of a run", default=None)


def scored_again(why: str) -> None:
    """Take note of a pair that was scored again."""
    if (incidents := INCIDENTS.get()) is not None:
        incidents[why] += 1
