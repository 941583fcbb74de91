"""Parameters of instructions, and how a count is compared with them."""

from collections.abc import Mapping
from typing import Any

Parameters = dict[str, Any]


def parameters_of(kwargs: object, position: int) -> Parameters:
    """Return what is stated for the instruction at `position`.

    Real data gives every instruction all the names there are, with null for
    those of others: null means not stated.
    """
    if not isinstance(kwargs, list | tuple) or position >= len(kwargs):
        return {}
    given = kwargs[position]
    if not isinstance(given, Mapping):
        return {}
    return {str(name): value for name, value in given.items() if value is not None}


def holds(count: int, relation: object, threshold: Any) -> bool:
    """Whether `count` stands in the named relation; one that is not known means "at least"."""
    if relation == "less than":
        return bool(count < threshold)
    if relation == "at most":
        return bool(count <= threshold)
    if relation == "exactly":
        return bool(count == threshold)
    return bool(count >= threshold)
