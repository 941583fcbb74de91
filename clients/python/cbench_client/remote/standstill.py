"""Standstill: whether this process was stopped (Ctrl-Z, a paused machine) while calls were out.

One that goes on finds their time up, and has not read yet what was answered meanwhile.
"""

# A timer that is so late was kept from it by more than a busy loop.
_STOPPED_S = 1.0


def was_stopped(late: float) -> bool:
    """Tell whether a timer came so many seconds late because this process was stopped."""
    return late > _STOPPED_S
