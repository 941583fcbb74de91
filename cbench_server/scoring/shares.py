"""Shares of what many want at once: whoever has least of it comes first."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

SHARE: ContextVar[str] = ContextVar("whose share is used", default="")
"""On whose behalf something is done: a client by its name, or a run."""


class FairPermits:
    """So many permits; a free one goes to who holds fewest, and among those to who waits longest.

    The spare ones are for those who hold none, so that nobody can hold all. Belongs to one
    event loop.
    """

    def __init__(self, size: int, spare: int = 0) -> None:
        self._size = size
        self._spare = spare
        self._used = 0
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def one(self, who: str | None = None) -> AsyncIterator[None]:
        """Hold a permit for the block, on behalf of `who`, else of whose share is used."""
        who = SHARE.get() if who is None else who
        await self._take(who)
        try:
            yield
        finally:
            self._give_back(who)

    async def _take(self, who: str) -> None:
        if self._has_room(who, len(self._waiting)):
            self._give(who)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back(who)
            else:
                self._forget(who, turn)
            raise

    def _give_back(self, who: str) -> None:
        self._held[who] -= 1
        if not self._held[who]:
            del self._held[who]
        self._used -= 1
        while self._waiting:
            # The first of equals: those who wait are kept in the order in which they came.
            least = min(self._waiting, key=lambda each: self._held[each])
            if not self._has_room(least):
                return
            turn = self._waiting[least].popleft()
            queue = self._waiting.pop(least)
            if queue:
                self._waiting[least] = queue
            if not turn.done():
                self._give(least)
                turn.set_result(None)

    def _has_room(self, who: str, before: int = 0) -> bool:
        """Whether there is a permit for one before whom so many others wait."""
        if self._used < self._size and not before:
            return True
        return not self._held[who] and self._size <= self._used < self._size + self._spare

    def _give(self, who: str) -> None:
        self._used += 1
        self._held[who] += 1

    def _forget(self, who: str, turn: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(who)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[who]
