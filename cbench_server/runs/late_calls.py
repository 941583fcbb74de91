"""Late calls: those that missed their deadline, and whether other calls may have made them.

One that was late beside others is made again while no other call of the run is,
before its row is failed. A system that takes so many calls at a time may still be at
as many that were given up: the next one waits behind them, so it is made again and
again, for a while.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeVar

from cbench_server.errors import CallFailed
from cbench_server.results import RETRIED_ALONE, Failure
from cbench_server.runs.plan import Plan
from cbench_server.runs.rows import Item
from cbench_server.runs.slots import Slots
from cbench_server.runs.turns import Traffic

T = TypeVar("T")

_LATE = "DEADLINE_EXCEEDED"
# Rows that were late alone as well: from then on it is not the others that make rows late.
_MAX_LATE_ALONE = 3
# How often a call is made again behind one that was given up.
_MAX_BEHIND = 10
_STILL_THERE_S = 0.05


class LateCalls:
    """What one lane knows of them."""

    def __init__(
        self,
        slots: Slots,
        traffic: Traffic,
        plan: Plan,
        clock: Callable[[], float],
        places: int | None,
    ) -> None:
        """`places` is how many calls the system takes at a time, None if nobody knows."""
        self._slots = slots
        self._traffic = traffic
        self._plan = plan
        self._clock = clock
        self._places = places
        self._at_work = 0
        """Calls that were given up and may still have a place."""
        self._late_alone = 0

    @property
    def is_behind(self) -> bool:
        """Whether calls that were given up may have all places there are."""
        return self._places is not None and self._at_work >= self._places

    def note_late(self, failure: Failure) -> None:
        """Take note of a failure: a call that was late may still be at work."""
        self._at_work += failure.reason == _LATE

    def note_answered(self) -> None:
        """Take note of an answer: one place at least is free."""
        if self._places is not None and self.is_behind:
            self._at_work = self._places - 1
            # It paid to wait.
            self._late_alone = 0

    def note_sent(self, items: Sequence[Item]) -> None:
        """Take note of what else the system has to do when calls are sent."""
        at_work, is_behind = self._slots.at_work, self.is_behind
        for item in items:
            item.in_flight = at_work
            item.has_company = is_behind

    def is_to_retry(self, item: Item, error: CallFailed) -> bool:
        """Whether to make a call that failed just now again, alone; takes note of it if not."""
        item.has_company |= item.in_flight > 1 or self._traffic.count > 1 or item.may_move
        is_late = error.failure.reason == _LATE
        if is_late and item.has_company and self._late_alone < _MAX_LATE_ALONE:
            return True
        self.note_late(error.failure)
        return False

    async def retry_alone(self, item: Item, attempt: Callable[[], Awaitable[T]]) -> T:
        """Make a call again while no other is made; raises CallFailed if it fails again."""
        if item.in_flight > 1:
            self._slots.overloaded(item.called_at)
        item.marks = (RETRIED_ALONE,)
        tries, patience = _MAX_BEHIND if self.is_behind else 1, _MAX_BEHIND
        self._at_work += 1
        # Behind its own earlier calls, a system that takes one at a time has no other company.
        alone = nullcontext() if tries > 1 else self._traffic.alone(self._plan.row_timeout)
        async with alone:
            while True:
                tries -= 1
                item.attempts = attempts = item.attempts + 1
                item.in_flight = 1
                item.called_at = self._clock()
                try:
                    answer = await attempt()
                except CallFailed as error:
                    if error.failure.reason == "ALREADY_EXISTS" and patience:
                        # It has not yet heard that the attempt before was given up.
                        patience -= 1
                        tries += 1
                        await asyncio.sleep(_STILL_THERE_S)
                        continue
                    self.note_late(error.failure)
                    if error.failure.reason == _LATE and tries and self.is_behind:
                        patience = _MAX_BEHIND
                        continue
                    self._late_alone += error.failure.reason == _LATE
                    raise CallFailed(replace(error.failure, attempts=item.attempts)) from error
                self._late_alone = 0
                item.attempts = max(item.attempts, attempts)
                return answer
