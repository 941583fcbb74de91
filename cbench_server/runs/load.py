"""The load of runs: what they have under way at this moment, for those who watch a daemon."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields


@dataclass(slots=True)
class Load:
    """What is under way, of one run or of several together."""

    calls: int = 0
    """Calls of systems in flight."""
    slots: int = 0
    """Calls that may be in flight now."""
    rows_unstored: int = 0
    """Rows begun that are not stored yet."""
    held_bytes: int = 0
    """Of examples and answers in memory."""
    held_bytes_limit: int = 0
    """Of what a run holds at most, unless one row is larger."""
    budget_usd: float = 0.0
    """What the runs may spend."""
    budget_spent_usd: float = 0.0
    """What they have spent of it."""


def together(loads: Iterable[Load]) -> Load:
    """Add them up."""
    added = [asdict(load) for load in loads]
    return Load(**{each.name: sum(load[each.name] for load in added) for each in fields(Load)})
