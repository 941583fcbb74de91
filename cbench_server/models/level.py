"""Level: how many calls one endpoint or system gets at once, found by trying instead of flooding.

It starts with one call in flight and doubles while that raises the throughput
by a tenth, up to a cap. Where it does not, the level before stays, and is
tried again later, each time after a longer pause: one look may have met a busy
moment. A refusal for overload or a missed deadline halves it, and climbing
begins again only after a while without trouble.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

CAP = 32
GAIN = 1.1
_CALM = 64
# Fewer calls, or a shorter time, tell nothing about throughput.
_LEAST_SEEN = 4
_LEAST_SECONDS = 0.1
_FIRST_PAUSE_S = 2.0


class Climb:
    """The search for a level. `limit` is where it stands."""

    def __init__(
        self, *, start: int = 1, cap: int = CAP, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = start
        self.halvings = 0
        """How often it was halved."""
        self._cap = cap
        self._clock = clock
        self._lower = start
        """The level before, to return to."""
        self._is_settled = cap <= start
        self._calm = 0
        self._pause = _FIRST_PAUSE_S
        self._look_again_at = 0.0
        self._before: float | None = None
        self._since: float | None = None
        self._done = 0

    def count(self, calls: int, *, is_full: bool) -> None:
        """Take note of calls that went well.

        `is_full` says that as many were in flight as may be: else throughput is that of
        the demand.
        """
        if self._is_settled:
            self._calm += calls
            if self.limit < self._cap and self._may_look_again():
                self._is_settled, self._before, self._calm = False, None, 0
                self.measure_anew()
        elif not is_full:
            self._since = None
        elif self._since is None:
            self.measure_anew()
        else:
            self._done += calls
            if self._done >= max(_LEAST_SEEN, 2 * self.limit):
                elapsed = self._clock() - self._since
                if elapsed >= _LEAST_SECONDS:
                    self._climb(self._done / elapsed)

    def _may_look_again(self) -> bool:
        return self._calm >= _CALM and self._clock() >= self._look_again_at

    def halve(self, halvings: int) -> None:
        """Step back after an overload, given how often that had been done when the call began."""
        # Calls that fell together say it once.
        if halvings == self.halvings:
            self.halvings += 1
            self.limit = max(1, self.limit // 2)
        self._settle()

    def _climb(self, throughput: float) -> None:
        if self._before is not None and throughput < GAIN * self._before:
            self.limit = self._lower
            self._look_again_at = self._clock() + self._pause
            self._pause *= 2
            self._settle()
        elif self.limit >= self._cap:
            self._settle()
        else:
            self._before, self._lower = throughput, self.limit
            self.limit = min(self._cap, 2 * self.limit)
        self.measure_anew()

    def _settle(self) -> None:
        self._is_settled, self._calm = True, 0

    def measure_anew(self) -> None:
        """Begin to measure throughput now."""
        self._since, self._done = self._clock(), 0


@dataclass(slots=True, eq=False)
class Turn:
    """Permission for one call."""

    halvings: int
    """How often the level had been halved when the call began."""


class Level:
    """Bounds the calls in flight; shared by threads and event loops.

    A call is `turn = await level.take()`, then `level.give_back(turn)`, with
    `overloaded` if the other side refused it for overload or missed its
    deadline, and `failed` if it otherwise says nothing about throughput.
    """

    def __init__(
        self, *, start: int = 1, cap: int = CAP, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._climb = Climb(start=start, cap=cap, clock=clock)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._in_flight = 0

    @property
    def limit(self) -> int:
        """How many calls may be in flight now."""
        return self._climb.limit

    @property
    def in_flight(self) -> int:
        """Calls that have their turn now."""
        return self._in_flight

    async def take(self) -> Turn:
        """Wait for a turn."""
        with self._lock:
            if self._in_flight < self.limit and not self._waiting:
                return self._begin()
            loop = asyncio.get_running_loop()
            place = (loop, loop.create_future())
            self._waiting.append(place)
        try:
            await place[1]
        except asyncio.CancelledError:
            with self._lock:
                if place in self._waiting:
                    self._waiting.remove(place)
                elif place[1].done() and not place[1].cancelled():
                    # It was called up already: the turn goes to the next.
                    self._in_flight -= 1
                self._call_up()
            raise
        return Turn(self._climb.halvings)

    def give_back(self, turn: Turn, *, overloaded: bool = False, failed: bool = False) -> None:
        """End a call."""
        with self._lock:
            self._in_flight -= 1
            if overloaded:
                self._climb.halve(turn.halvings)
            elif not failed:
                self._climb.count(1, is_full=bool(self._waiting))
            self._call_up()

    @contextmanager
    def held(self, turn: Turn) -> Iterator[None]:
        """Give the turn back at the end, as failed if something was raised."""
        try:
            yield
        except BaseException:
            self.give_back(turn, failed=True)
            raise
        self.give_back(turn)

    def _begin(self) -> Turn:
        self._in_flight += 1
        return Turn(self._climb.halvings)

    def _call_up(self) -> None:
        while self._waiting and self._in_flight < self.limit:
            loop, future = self._waiting.popleft()
            self._in_flight += 1
            try:
                loop.call_soon_threadsafe(self._admit, future)
            except RuntimeError:
                # Its event loop is closed; no one waits there.
                self._in_flight -= 1

    def _admit(self, future: asyncio.Future[None]) -> None:
        if not future.done():
            future.set_result(None)
            return
        with self._lock:
            self._in_flight -= 1
            self._call_up()
