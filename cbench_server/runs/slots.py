"""Slots of a system: calls in flight, rows that are not stored yet, and bytes held.

A crash repeats the calls in flight and those whose rows are not stored yet. So
the rows that may wait for the store are bounded by time: as many as the system
answers in 25 ms, and few for one that is slow or says that it charges.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from cbench_server.limits import LARGE_ANSWER, MAX_HELD_BYTES
from cbench_server.models.level import CAP, Climb
from cbench_server.runs.load import Load
from cbench_server.runs.turns import Traffic
from cbench_server.systems.shared_level import SharedLevel

AHEAD_SECONDS = 0.025
MAX_AHEAD = 512


class ByteBudget:
    """Bounds the bytes of examples and outputs a run holds in memory, and all runs together.

    One row of each run is always allowed, however large, so that a row over the
    budget runs alone instead of never, and no run waits for another.
    """

    def __init__(self, limit: int = MAX_HELD_BYTES, shared: "ByteBudget | None" = None) -> None:
        """`shared` is the budget of all runs together."""
        self._limit = limit
        self._held = 0
        self._shared = shared

    def describe(self, load: Load) -> None:
        """Say what is held, and how much may be."""
        load.held_bytes, load.held_bytes_limit = self._held, self._limit

    def has_room(self, size: int) -> bool:
        """Tell whether `size` more bytes may be held."""
        return self._held == 0 or size <= self._left

    def room_for(self, size: int) -> int:
        """Tell how many more answers of `size` may be held."""
        return max(0, self._left // size)

    @property
    def _left(self) -> int:
        left = self._limit - self._held
        return left if self._shared is None else min(left, self._shared._left)

    def hold(self, size: int) -> None:
        """Count bytes as held."""
        self._held += size
        if self._shared is not None:
            self._shared.hold(size)

    def release(self, size: int) -> None:
        """Count bytes as gone."""
        self.hold(-size)

    def close(self) -> None:
        """Count all as gone, and from now on nothing for all runs."""
        self.release(self._held)
        self._shared = None


class Slots:
    """The slots of one system.

    Args:
        width: The most calls in flight. It begins with one and finds by itself how
            many pay, and steps back when the system is overloaded.
        ahead: Calls that the caller queues by itself, beyond those in flight.
        budget: Shared by all systems of a run.
        traffic: Likewise.
        scored_apart: Rows that may be with scorers of other machines, where answers cost nothing.
        is_fixed: Whether to begin with all of them.
        level: How many calls the replicas take, of a system that has some.
    """

    def __init__(
        self,
        width: int,
        ahead: int,
        budget: ByteBudget,
        clock: Callable[[], float],
        traffic: Traffic | None = None,
        *,
        is_fixed: bool = False,
        scored_apart: int = 0,
        level: SharedLevel | None = None,
    ) -> None:
        self.width = width
        self.active = 0
        self.budget = budget
        self._traffic = traffic or Traffic()
        self.charges = False
        """Whether the system has said that its answers cost something."""
        self._ahead = ahead
        self._clock = clock
        self._climb = level or Climb(start=width if is_fixed else 1, cap=width, clock=clock)
        self._stepped_back_at = 0.0
        self._unsettled = 0
        self._least_window = width + ahead + max(8, width // 2)
        self._scored_apart = scored_apart
        self._window = max(self._least_window, width + ahead + scored_apart)
        self._counted = 0
        self._counted_since = clock()
        self._waiters: deque[asyncio.Future[bool]] = deque()
        self._large_waiters: deque[tuple[int, asyncio.Future[bool]]] = deque()
        self._settled: asyncio.Future[None] | None = None
        self._is_closed = False
        self._answer_size = 0

    @property
    def limit(self) -> int:
        """Calls that may be at work now."""
        return self._climb.limit

    @property
    def at_work(self) -> int:
        """Calls the system has now, without those that its caller has queued."""
        return min(self.active, self.limit) if self._ahead else self.active

    def describe(self, load: Load) -> None:
        """Add what is under way."""
        load.calls += self.at_work
        load.slots += self.limit
        load.rows_unstored += self._unsettled

    # Calls that are started at once.

    @property
    def room(self) -> int:
        """How many calls may start now, as far as the bytes of examples allow."""
        if self._traffic.is_paused:
            return 0
        room = min(self.limit + self._ahead - self.active, self._window - self._unsettled)
        return min(room, self._room_for_answers) if self.has_large_answers else room

    @property
    def _room_for_answers(self) -> int:
        """How many more answers as large as the last ones can be held; one where there is none."""
        least = int(not self.active and not self._unsettled)
        return max(least, self.budget.room_for(self._answer_size) - self.active)

    def start(self, calls: int, size: int) -> None:
        """Count calls as in flight, with a row each to come."""
        self.active += calls
        self._traffic.count += calls
        self.begin_rows(calls, size)

    def end(self, calls: int = 1) -> None:
        """Count calls as over."""
        self.active -= calls
        self._traffic.ended(calls)

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

    def note_size(self, size: int) -> None:
        """Take note of an answer's size: further ones may be as large."""
        self._answer_size = max(size, self._answer_size - (self._answer_size >> 4))

    @property
    def has_large_answers(self) -> bool:
        """Whether the last answers were so large that they are counted before they come."""
        return self._answer_size >= LARGE_ANSWER

    def answered(self, rows: int) -> None:
        """Count answers that become rows; their rate says how many may wait for the store."""
        self._counted += rows
        now = self._clock()
        elapsed = now - self._counted_since
        if elapsed >= AHEAD_SECONDS:
            ahead = 0
            if not self.charges:
                soon = int(self._counted / elapsed * AHEAD_SECONDS)
                ahead = max(min(MAX_AHEAD, soon), self._scored_apart)
            self._window = max(self._least_window, self.width + self._ahead + ahead)
            self._counted, self._counted_since = 0, now

    def succeeded(self, calls: int) -> None:
        """Count calls that went well, before they are counted as over."""
        self._climb.count(calls, is_full=self.active >= self.limit)

    def begin_wide(self) -> None:
        """Begin with all calls there may be without being asked for, where that does no harm."""
        if self.limit < min(self.width, CAP):
            self._climb.begin_at(min(self.width, CAP))

    def overloaded(self, sent_at: float | None = None) -> None:
        """Step back: a call that was sent then met a system that is full, or its deadline."""
        # Calls that fell together say it once.
        if sent_at is None or sent_at >= self._stepped_back_at:
            self._stepped_back_at = self._clock()
            self._climb.halve(self._climb.halvings)

    # Calls that wait for their turn.

    async def take(self, size: int = 0) -> bool:
        """Wait for a place among the calls in flight; False if no more calls are to be made.

        `size` is that of a conversation, which must have room in memory too; its
        questions need no further room.
        """
        if self._is_closed:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if size:
            self._large_waiters.append((size, waiter))
        else:
            self._waiters.append(waiter)
        self.pump()
        return await waiter

    def give_back(self) -> None:
        """Free a place that was taken."""
        self.end()
        self.pump()

    def pump(self) -> None:
        """Give places to those who wait, in their order: questions, then conversations."""
        while self._waiters and self.room > 0:
            self._admit(self._waiters.popleft())
        while self._large_waiters and self.room > 0:
            if not self.budget.has_room(self._large_waiters[0][0]):
                return
            self._admit(self._large_waiters.popleft()[1])

    def _admit(self, waiter: "asyncio.Future[bool]") -> None:
        if not waiter.done():
            self.active += 1
            self._traffic.count += 1
            waiter.set_result(True)

    @property
    def is_window_full(self) -> bool:
        """Whether as many rows wait for the store as may, or as large ones."""
        if self.has_large_answers and self._room_for_answers == 0:
            return self._unsettled > 0
        return self._unsettled >= self._window

    async def settled(self) -> None:
        """Wait until more rows may be made without a call."""
        while self.is_window_full:
            self._settled = asyncio.get_running_loop().create_future()
            await self._settled

    def close(self) -> None:
        """Give no more places to those who wait."""
        self._is_closed = True
        for waiter in [*self._waiters, *[each[1] for each in self._large_waiters]]:
            if not waiter.done():
                waiter.set_result(False)
        self._waiters.clear()
        self._large_waiters.clear()
