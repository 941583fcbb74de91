"""A first-come lock that readers share and writers do not."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """Lets in many shared holders or one exclusive holder, in order of arrival."""

    def __init__(self) -> None:
        self._inside = 0
        self._is_exclusive = False
        self._waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether none is inside or waiting."""
        return not self._inside and not self._waiting

    @asynccontextmanager
    async def hold(self, *, exclusive: bool) -> AsyncIterator[None]:
        """Wait for a place, and keep it for the block."""
        place = (exclusive, asyncio.get_running_loop().create_future())
        self._waiting.append(place)
        self._admit()
        try:
            await place[1]
        except asyncio.CancelledError:
            if place[1].cancelled():
                self._waiting.remove(place)
                self._admit()
            else:
                self._leave()
            raise
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            exclusive, future = self._waiting[0]
            if self._inside and (exclusive or self._is_exclusive):
                return
            if future.cancelled():
                # Its owner removes it, and admits those behind it.
                return
            self._waiting.popleft()
            self._inside += 1
            self._is_exclusive = exclusive
            future.set_result(None)
