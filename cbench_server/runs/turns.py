"""Turns of systems to be timed alone, before any of them is called at full width.

A latency says something about a system only if nothing else is at work. So the
first rows of each system are called one at a time, while no other system is:
at most 30, at most ten seconds of calls, at least three. They are chosen by the
run's seed among the first examples, the same for every system, so that nobody
waits for a long dataset to be loaded. The first call warms the system up: its
row counts like all others, its time does not.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b

TIMED_ROWS = 30
TIMED_SECONDS = 10.0
LEAST_TIMED = 3
CHOSEN_AMONG = 128
"""Examples that the rows to be timed are chosen from: the first ones of the run."""
CHOSEN_AMONG_BYTES = 4_000_000
QUICK_SECONDS = 0.1 / 32
"""A system that takes no longer has 32 calls done in a tenth of a second, even one by one."""


class Turns:
    """Which system is being timed; the others wait until all have been."""

    def __init__(self, systems: Iterable[str]) -> None:
        self._left = set(systems)
        self._lock = asyncio.Lock()
        self._holder: str | None = None
        self.over = asyncio.Event()
        """Set when every system has had its turn."""
        if not self._left:
            self.over.set()

    async def take(self, system: str) -> None:
        """Wait until it is this system's turn."""
        await self._lock.acquire()
        self._holder = system

    def is_held_by(self, system: str) -> bool:
        """Whether it still is this system's turn, which ends early when the system is away."""
        return self._holder == system

    def end(self, system: str) -> None:
        """Let the next system have its turn."""
        if self._holder == system:
            self._holder = None
            self._lock.release()
        self._left.discard(system)
        if not self._left:
            self.over.set()


class Traffic:
    """Calls in flight of all systems of a run, which stop coming while one is made alone."""

    def __init__(self) -> None:
        self.count = 0
        self.is_paused = False
        self.resumed: Callable[[], None] = lambda: None
        """Called when calls may be made again."""
        self._alone = asyncio.Lock()
        self._waiting = 0
        self._quiet: asyncio.Future[None] | None = None

    def ended(self, calls: int) -> None:
        """Count calls as over."""
        self.count -= calls
        if self._quiet is not None and self.count <= self._waiting and not self._quiet.done():
            self._quiet.set_result(None)

    @asynccontextmanager
    async def alone(self, patience: float) -> AsyncIterator[None]:
        """Wait, but not forever, until no call is in flight but those that wait here."""
        self._waiting += 1
        self.is_paused = True
        try:
            async with self._alone:
                if self.count > self._waiting:
                    self._quiet = asyncio.get_running_loop().create_future()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._quiet, patience)
                yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.is_paused = False
                self.resumed()


class Allowance:
    """What may still be called alone: so many rows, for so long."""

    def __init__(self, rows: int, processes: int = 1) -> None:
        """`processes` says how many replicas share the rows; each of them gets some."""
        self._least = LEAST_TIMED * processes
        self.rows = max(rows, min(rows, LEAST_TIMED) * processes)
        self._calls = 0
        self._seconds = 0.0
        self._is_stopped = False

    def spend(self, seconds: float, *, calls: int = 1) -> None:
        """Count calls and the time they took."""
        self._calls += calls
        self._seconds += seconds

    def stop(self) -> None:
        """Allow nothing more: what would be timed next is not the system."""
        self._is_stopped = True

    @property
    def is_spent(self) -> bool:
        """Whether enough was called."""
        is_long = self._seconds >= TIMED_SECONDS and self._calls >= self._least
        return self._is_stopped or self._calls >= self.rows or is_long


def chosen_among(count: int, seed: int) -> list[int]:
    """Put the first numbers, at most `CHOSEN_AMONG` of `count`, in an order fixed by the seed."""

    def rank(number: int) -> bytes:
        return blake2b(f"{seed}:{number}".encode(), digest_size=12).digest()

    return sorted(range(min(count, CHOSEN_AMONG)), key=rank)
