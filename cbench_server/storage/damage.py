"""Damage of one run, told from its signs and put into words."""

from collections.abc import Callable
from struct import error as StructError  # noqa: N812 - a class that is named like a value
from typing import Any

import msgspec

from cbench_server.errors import DamagedRun, printable

# What a flipped byte can lead to: another value, another type, or nothing that decodes.
SIGNS = (ValueError, TypeError, AttributeError, StructError, msgspec.MsgspecError)

DIFFERS = "its checksum differs"


def damaged(run_id: str, what: str, why: Exception | str = DIFFERS) -> DamagedRun:
    """Say what of a run is not what was written."""
    if isinstance(why, TypeError | AttributeError):
        why = "what is there is of another kind"
    return DamagedRun(run_id, f'{what} of run "{printable(run_id)}" is damaged in the store', why)


def missing(run_id: str, what: str) -> DamagedRun:
    """Say what of a run should be in the store and is not."""
    return DamagedRun(run_id, f'{what} of run "{printable(run_id)}" is missing from the store')


def is_sum(total: Any, computed: Callable[..., int]) -> bool:
    """Tell whether a checksum is right; values of a wrong kind have none."""
    try:
        return bool(computed() == total)
    except SIGNS:
        return False
