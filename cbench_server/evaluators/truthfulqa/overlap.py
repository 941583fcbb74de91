"""Overlap of counted units with a sequence of them."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

Unit = TypeVar("Unit")


def overlap(counts: Mapping[Unit, int], units: Iterable[Unit]) -> int:
    """Count the units that are among those counted, none more often than it was counted."""
    left = dict(counts)
    shared = 0
    for unit in units:
        if count := left.get(unit):
            left[unit] = count - 1
            shared += 1
    return shared
