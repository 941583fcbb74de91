"""Standstill: time in which this process was stopped (Ctrl-Z, a paused machine) counts for nobody.

One that goes on finds time up for answers that came meanwhile, and that it has not read yet.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# A timer that is so late was kept from it by more than a busy loop.
_STOPPED_S = 1.0


def was_stopped(late: float) -> bool:
    """Tell whether a timer came so many seconds late because this process was stopped."""
    return late > _STOPPED_S


@asynccontextmanager
async def time_awake(seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
    """Do as `asyncio.timeout`, but give what is waited for its time anew after a stop."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def start(limit: asyncio.Timeout) -> None:
        nonlocal timer
        if seconds is not None:
            due = loop.time() + seconds
            timer = loop.call_at(due, look, limit, due)

    def look(limit: asyncio.Timeout, due: float) -> None:
        if was_stopped(loop.time() - due):
            start(limit)
        else:
            limit.reschedule(due)

    try:
        async with asyncio.timeout(None) as limit:
            start(limit)
            yield limit
    finally:
        if timer is not None:
            timer.cancel()
