"""Work that is done to its end, though whoever asked for it has left.

gRPC cancels the task of a call whose client goes or whose deadline passes, at
whichever await it stands. Between two steps of which the first is stored that would
leave a run that nobody works on: accepted or resumed, and never begun.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, TypeVar

T = TypeVar("T")
C = TypeVar("C", bound=AbstractContextManager[Any])


async def opened(make: Callable[[], C]) -> C:
    """Make in a thread what must be closed; so it is if nobody waits for it any more."""
    making = asyncio.ensure_future(asyncio.to_thread(make))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(_close)
        raise


def _close(making: "asyncio.Future[C]") -> None:
    if not making.cancelled() and making.exception() is None:
        making.result().__exit__(None, None, None)


class Unbroken:
    """Tasks of their own for what must not stop half-way."""

    def __init__(self) -> None:
        self._going: set[asyncio.Task[Any]] = set()

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what comes of the work; it goes on if this is cancelled."""
        task = asyncio.create_task(work)
        self._going.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    async def all_done(self, timeout: float | None = None) -> None:
        """Wait for what goes on, at most so many seconds if they are given."""
        if self._going:
            await asyncio.wait(self._going, timeout=timeout)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._going.discard(task)
        if not task.cancelled():
            # Read here, since whoever asked may not be there to read it.
            task.exception()
