"""Turns of runs, shared out by the names of those who started them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from cbench_server.errors import LimitReached


@dataclass(frozen=True)
class Limits:
    """How much the orchestrator takes on."""

    max_runs: int = 4
    """Runs worked on at once; others are queued."""
    max_queued: int = 100
    """Runs waiting for their turn; more are refused."""
    is_shared: Callable[[], bool] = lambda: False
    """Whether runs may be started under several names."""


class RunTurns:
    """Gives each free turn to the name that has the fewest, and to its oldest run.

    Where there are several names, the last free turn is kept for one that has none, and
    none has more than half of all runs that are taken on.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free = limits.max_runs
        self._working: Counter[str] = Counter()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._taken: Counter[str] = Counter()
        self.in_store = 0
        """Runs that wait in a queue which daemons share, when it was looked at last."""

    def check_room(self, name: str) -> None:
        """Refuse a run for which there is no place even in the queue."""
        most = self._limits.max_runs + self._limits.max_queued
        taken = self._taken.total()
        if taken >= most:
            raise LimitReached(
                f"{taken} runs are in progress or queued, the most this daemon takes. "
                "Try again later, or raise max_queued."
            )
        share = max(1, most // 2)
        if self._limits.is_shared() and self._taken[name] >= share:
            raise LimitReached(
                f'{self._taken[name]} runs of "{name}" are in progress or queued, half of what '
                "this daemon takes. Try again later, or raise max_queued."
            )

    def has_turn(self, name: str, but: int = 0) -> bool:
        """Tell whether a run would be worked on at once; `but` so many that are counted already."""
        taken = self._taken.total() - but
        is_last = taken == self._limits.max_runs - 1 and self._limits.max_runs > 1
        is_kept = is_last and self._taken[name] > but and self._limits.is_shared()
        return taken < self._limits.max_runs and not is_kept

    def check_queue(self, queued: int) -> None:
        """Refuse a run where so many wait in a queue that daemons share."""
        if queued >= self._limits.max_queued:
            raise LimitReached(
                f"{queued} runs are queued in the store, the most this daemon adds to. Try again "
                "later, or raise max_queued."
            )

    @property
    def taken(self) -> int:
        """How many runs are in progress or queued."""
        return self._taken.total()

    @property
    def queued(self) -> int:
        """How many wait for their turn, here or in a queue that daemons share."""
        return len(self._waiting) + self.in_store

    def take(self, name: str) -> None:
        """Count a run, until it is forgotten."""
        self._taken[name] += 1

    def forget(self, name: str) -> None:
        """Count a run no more."""
        self._taken[name] -= 1
        if not self._taken[name]:
            del self._taken[name]

    @asynccontextmanager
    async def turn_of(self, name: str) -> AsyncIterator[None]:
        """Wait for a turn, and keep it for the block."""
        place = (name, asyncio.get_running_loop().create_future())
        self._waiting.append(place)
        self._admit()
        try:
            await place[1]
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
            else:
                self._leave(name)
            raise
        try:
            yield
        finally:
            self._leave(name)

    def _leave(self, name: str) -> None:
        self._free += 1
        self._working[name] -= 1
        if not self._working[name]:
            del self._working[name]
        self._admit()

    def _admit(self) -> None:
        while self._free and self._waiting:
            chosen = min(self._waiting, key=lambda place: self._working[place[0]])
            name, future = chosen
            is_last = self._free == 1 and self._limits.max_runs > 1
            if is_last and self._working[name] and self._limits.is_shared():
                return
            self._waiting.remove(chosen)
            self._free -= 1
            self._working[name] += 1
            if not future.done():
                future.set_result(None)
