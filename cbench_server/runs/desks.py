"""Desks at which requests about a run are dealt with one at a time, in the order they come."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Desks:
    """A desk per run, there for as long as anybody stands at it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._present: Counter[str] = Counter()

    @asynccontextmanager
    async def at(self, run_id: str) -> AsyncIterator[None]:
        """Have the run to oneself."""
        self._present[run_id] += 1
        try:
            async with self._locks.setdefault(run_id, asyncio.Lock()):
                yield
        finally:
            self._present[run_id] -= 1
            if not self._present[run_id]:
                del self._present[run_id], self._locks[run_id]
