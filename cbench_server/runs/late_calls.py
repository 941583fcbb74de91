"""Late calls: those that missed their deadline, and whether other calls may have made them.

One that was late beside others is made again while no other call of the run is,
before its row is failed. A system may still be at calls that were given up: at as many
as it takes at a time, or at one where nobody knows how many that are. What was sent
after them and gets no answer waits behind them, so it is made again and again, for a while.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeVar

from cbench_server.errors import CallFailed
from cbench_server.results import RETRIED_ALONE, Failure
from cbench_server.runs.plan import Plan
from cbench_server.runs.rows import Item
from cbench_server.runs.silence import LATE, Silence
from cbench_server.runs.slots import Slots
from cbench_server.runs.turns import Traffic

T = TypeVar("T")
_Sent = tuple[float, int]
"""When a call was sent; among those that were sent together, in which place."""
_BEFORE_ALL = (0.0, 0)

# Rows that were late alone as well: from then on it is not the others that make rows late.
_MAX_LATE_ALONE = 3
# How often a call is made again behind one that was given up.
_MAX_BEHIND = 10
# And how often in all without an answer to anything, after which nobody waits: by a system that
# has answered before, and by one that may never.
_MAX_IN_VAIN = 20
_MAX_IN_VAIN_AT_FIRST = 3
_STILL_THERE_S = 0.05
_MOST_NOTED = 1024


class LateCalls:
    """What one lane knows of them."""

    def __init__(
        self,
        silence: Silence,
        slots: Slots,
        traffic: Traffic,
        plan: Plan,
        clock: Callable[[], float],
        places: int | None,
    ) -> None:
        """`places` is how many calls the system takes at a time, None if nobody knows."""
        self.silence = silence
        self._slots = slots
        self._traffic = traffic
        self._plan = plan
        self._clock = clock
        self._places = places or 1
        self._is_bound = bool(places)
        self._at_work: deque[_Sent] = deque(maxlen=_MOST_NOTED)
        """When calls were sent that were given up and may still have a place."""
        self._late_alone = 0
        self._in_vain = 0
        self._most_in_vain = _MAX_IN_VAIN_AT_FIRST

    @property
    def is_full(self) -> bool:
        """Whether calls that were given up may have all places that a system is known to have."""
        return self._is_bound and self._is_behind

    @property
    def _is_behind(self) -> bool:
        return len(self._at_work) >= self._places

    def note_late(self, item: Item, failure: Failure) -> None:
        """Take note of a failure: a call that was late may still be at work."""
        if failure.reason == LATE:
            self._at_work.append(_sent(item))
        self.silence.note(failure, item.called_at)

    def note_answered(self, *, is_heard: bool = True) -> None:
        """Take note of an answer: one place at least is free."""
        if is_heard:
            self.silence.heard()
        self._in_vain = 0
        self._most_in_vain = _MAX_IN_VAIN
        if self.is_full:
            # It paid to wait.
            self._late_alone = 0
        while self._is_behind:
            self._at_work.popleft()

    def note_sent(self, items: Sequence[Item]) -> None:
        """Take note of what else the system has to do when calls are sent."""
        at_work, is_behind = self._slots.at_work, self._is_behind
        for item in items:
            item.in_flight = at_work
            item.has_company = is_behind

    def is_to_retry(self, item: Item, error: CallFailed) -> bool:
        """Whether to make a call that failed just now again, alone."""
        item.has_company |= item.in_flight > 1 or self._traffic.count > 1 or item.may_move
        is_late = error.failure.reason == LATE
        return is_late and item.has_company and self._late_alone < _MAX_LATE_ALONE

    async def retry_alone(self, item: Item, attempt: Callable[[], Awaitable[T]]) -> T:
        """Make a call again while no other is made; raises CallFailed if it fails again."""
        if item.in_flight > 1:
            self._slots.overloaded(item.called_at)
        item.marks = (RETRIED_ALONE,)
        first = _sent(item)
        patience = _MAX_BEHIND
        # Behind its own earlier calls, a system that takes one at a time has no other company.
        is_one = self._is_bound and self._places == 1 and self._is_after_others(first)
        alone = nullcontext() if is_one else self._traffic.alone(self._plan.row_timeout)
        async with alone:
            tries = _MAX_BEHIND if self._is_after_others(first) else 1
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
                    if error.failure.reason == LATE:
                        # Whoever is made again after this is behind it.
                        self._at_work.append(_BEFORE_ALL)
                        self.silence.note(error.failure, item.called_at)
                    if error.failure.reason == LATE and tries and self._may_wait:
                        self._in_vain += 1
                        patience = _MAX_BEHIND
                        continue
                    self._late_alone += error.failure.reason == LATE
                    raise CallFailed(replace(error.failure, attempts=item.attempts)) from error
                self._late_alone = 0
                item.attempts = max(item.attempts, attempts)
                return answer

    @property
    def _may_wait(self) -> bool:
        return self._is_behind and self._in_vain < self._most_in_vain

    def _is_after_others(self, sent: _Sent) -> bool:
        """Whether a call that was sent then waits behind as many as there are places."""
        return sum(each < sent for each in self._at_work) >= self._places


def _sent(item: Item) -> _Sent:
    return item.called_at, item.spooled.ordinal
