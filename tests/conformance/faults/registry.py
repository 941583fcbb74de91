"""The faults by name, each a function that puts it into a working program."""

from collections.abc import Callable

FAULTS: dict[str, Callable[[], None]] = {}


def fault(function: Callable[[], None]) -> Callable[[], None]:
    """Offer a fault under the name of its function, with dashes."""
    FAULTS[function.__name__.replace("_", "-")] = function
    return function
