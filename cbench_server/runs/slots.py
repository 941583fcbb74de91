"""Slots of a system: calls in flight, rows that are not stored yet, and bytes held.

A crash repeats the calls in flight and those whose rows are not stored yet. So
the rows that may wait for the store are bounded by time: as many as the system
answers in 25 ms, and few for one that is slow or says that it charges.
"""

import asyncio
from collections import deque
from collections.abc import Callable

AHEAD_SECONDS = 0.025
MAX_AHEAD = 512


class ByteBudget:
    """Bounds the bytes of examples and outputs a run holds in memory.

    One row is always allowed, however large, so that a row over the budget
    runs alone instead of never.
    """

    def __init__(self, limit: int = 256 * 1024 * 1024) -> None:
        self._limit = limit
        self._held = 0

    def has_room(self, size: int) -> bool:
        """Tell whether `size` more bytes may be held."""
        return self._held == 0 or self._held + size <= self._limit

    def hold(self, size: int) -> None:
        """Count bytes as held."""
        self._held += size

    def release(self, size: int) -> None:
        """Count bytes as gone."""
        self._held -= size


class Slots:
    """The slots of one system.

    Args:
        width: The most calls in flight; halved when the system says that it is
            full, and regrown slowly.
        ahead: Calls that the caller queues by itself, beyond those in flight.
        budget: Shared by all systems of a run.
    """

    def __init__(
        self, width: int, ahead: int, budget: ByteBudget, clock: Callable[[], float]
    ) -> None:
        self.width = width
        self.limit = width
        """Calls that may be in flight now."""
        self.active = 0
        self.budget = budget
        self.charges = False
        """Whether the system has said that its answers cost something."""
        self._ahead = ahead
        self._clock = clock
        self._unsettled = 0
        self._least_window = width + ahead + max(8, width // 2)
        self._window = self._least_window
        self._successes = 0
        self._counted = 0
        self._counted_since = clock()
        self._waiters: deque[tuple[int, asyncio.Future[bool]]] = deque()
        self._settled: asyncio.Future[None] | None = None
        self._is_closed = False

    # Calls that are started at once.

    @property
    def room(self) -> int:
        """How many calls may start now, as far as bytes allow."""
        return min(self.limit + self._ahead - self.active, self._window - self._unsettled)

    def start(self, calls: int, size: int) -> None:
        """Count calls as in flight, with a row each to come."""
        self.active += calls
        self.begin_rows(calls, size)

    def end(self, calls: int = 1) -> None:
        """Count calls as over."""
        self.active -= calls

    def begin_rows(self, rows: int, size: int) -> None:
        """Count rows as not yet stored."""
        self._unsettled += rows
        self.budget.hold(size)

    def settle(self, rows: int, size: int) -> None:
        """Count rows as stored."""
        self._unsettled -= rows
        self.budget.release(size)
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    # What the system's answers say.

    def answered(self, rows: int) -> None:
        """Count answers that become rows; their rate says how many may wait for the store."""
        self._counted += rows
        now = self._clock()
        elapsed = now - self._counted_since
        if elapsed >= AHEAD_SECONDS:
            rate = 0.0 if self.charges else self._counted / elapsed
            ahead = min(MAX_AHEAD, int(rate * AHEAD_SECONDS))
            self._window = max(self._least_window, self.width + self._ahead + ahead)
            self._counted, self._counted_since = 0, now

    def succeeded(self, calls: int) -> None:
        """Count calls that went well; a whole round of them earns one more call in flight."""
        if self.limit < self.width:
            self._successes += calls
            while self._successes >= self.limit < self.width:
                self._successes -= self.limit
                self.limit += 1

    def exhausted(self) -> None:
        """React to a system that is full."""
        self.limit = max(1, self.limit // 2)
        self._successes = 0

    # Calls that wait for their turn.

    async def take(self, size: int = 0) -> bool:
        """Wait for a place among the calls in flight; False if no more calls are to be made.

        `size` is that of a conversation, which must have room in memory too; its
        questions need no further room.
        """
        if self._is_closed:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters.append((size, waiter))
        self.pump()
        return await waiter

    def give_back(self) -> None:
        """Free a place that was taken."""
        self.end()
        self.pump()

    def pump(self) -> None:
        """Give places to those who wait, in their order."""
        for _ in range(len(self._waiters)):
            if self.room <= 0:
                return
            size, waiter = self._waiters.popleft()
            if size and not self.budget.has_room(size):
                # It must not hold up the questions of those whose end makes room.
                self._waiters.append((size, waiter))
            elif not waiter.done():
                self.active += 1
                waiter.set_result(True)

    async def settled(self) -> None:
        """Wait until more rows may be made without a call."""
        while self._unsettled >= self._window:
            self._settled = asyncio.get_running_loop().create_future()
            await self._settled

    def close(self) -> None:
        """Give no more places to those who wait."""
        self._is_closed = True
        while self._waiters:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(False)
