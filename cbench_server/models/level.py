"""Level: how many calls one endpoint gets at once, found by trying instead of flooding it.

It starts with one call in flight and doubles while that raises the throughput
by a tenth, up to a cap. Where it does not, the level before stays. A refusal
for overload or a missed deadline halves it, and climbing begins again only
after a while without trouble.
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
# Fewer calls than this tell nothing about throughput.
_LEAST_SEEN = 4


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
        self.limit = start
        self._cap = cap
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._in_flight = 0
        self._halvings = 0
        self._is_settled = cap <= start
        self._calm = 0
        self._before: float | None = None
        self._since: float | None = None
        self._done = 0

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
            if self._since is None:
                self._measure_anew()
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
        return Turn(self._halvings)

    def give_back(self, turn: Turn, *, overloaded: bool = False, failed: bool = False) -> None:
        """End a call."""
        with self._lock:
            self._in_flight -= 1
            if overloaded:
                self._halve(turn)
            elif not failed:
                self._count()
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
        return Turn(self._halvings)

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

    # The search.

    def _halve(self, turn: Turn) -> None:
        # Calls that fell together say it once.
        if turn.halvings == self._halvings:
            self._halvings += 1
            self.limit = max(1, self.limit // 2)
        self._is_settled, self._calm, self._before = True, 0, None
        self._measure_anew()

    def _count(self) -> None:
        self._calm += 1
        if self._is_settled:
            if self._halvings and self._calm >= _CALM and self.limit < self._cap:
                self._is_settled = False
                self._calm = 0
                self._measure_anew()
            return
        if not self._waiting:
            # With nobody waiting, throughput is that of the demand.
            self._since = None
            return
        if self._since is None:
            self._measure_anew()
            return
        self._done += 1
        if self._done >= max(_LEAST_SEEN, 2 * self.limit):
            self._climb()

    def _climb(self) -> None:
        assert self._since is not None
        throughput = self._done / max(self._clock() - self._since, 1e-9)
        if self._before is not None and throughput < GAIN * self._before:
            self.limit = max(1, self.limit // 2)
            self._is_settled = True
        elif self.limit >= self._cap:
            self._is_settled = True
        else:
            self._before = throughput
            self.limit = min(self._cap, 2 * self.limit)
        self._measure_anew()

    def _measure_anew(self) -> None:
        self._since, self._done = self._clock(), 0
