"""The retry rule: which failed calls are tried again, when, and how long a system is waited for."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from cbench_server.errors import CallFailed, RunFailed
from cbench_server.results import Failure
from cbench_server.runs.plan import Plan
from cbench_server.runs.slots import Slots

T = TypeVar("T")

_MAX_LOST_CALLS = 8
_WAIT_BEFORE_WAITING_S = 1.0


class Retry:
    """Repeats calls to one system; while it is away, all of them wait at one gate.

    Args:
        slots: Learn from what the system answers how many calls it can take.
        wait_connected: Waits until the system is there, at most so many seconds.
        set_waiting: Told why the system is away, and None when it is back.
        reopened: Called when a system that was away is back.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        slots: Slots,
        clock: Callable[[], float],
        wait_connected: Callable[[float], Awaitable[bool]],
        set_waiting: Callable[[str, str | None], None],
        reopened: Callable[[], None],
    ) -> None:
        self._name = name
        self._plan = plan
        self._slots = slots
        self._clock = clock
        self._wait_connected = wait_connected
        self._set_waiting = set_waiting
        self._reopened = reopened
        self._gate = asyncio.Event()
        self._gate.set()
        self._reconnecting: asyncio.Task[None] | None = None
        self._gone: BaseException | None = None

    @property
    def is_open(self) -> bool:
        """Whether the system is there, as far as is known."""
        return self._gate.is_set() and self._gone is None

    async def call(
        self, attempt: Callable[[float], Awaitable[T]], failed: CallFailed | None = None
    ) -> tuple[T, int]:
        """Make a call and return its result, and how many attempts that took.

        `attempt` makes one, in the seconds it is given; `failed` is how a first
        one, made elsewhere, ended. Raises CallFailed when no further one can
        help, and RunFailed when the system stayed away too long.
        """
        remaining = self._plan.row_timeout
        attempts = lost = 0
        while True:
            attempts += 1
            error, failed = failed, None
            started = self._clock()
            if error is None:
                if not self._gate.is_set():
                    await self._gate.wait()
                if self._gone is not None:
                    raise self._gone
                started = self._clock()
                try:
                    reply = await attempt(remaining)
                except CallFailed as caught:
                    error = caught
                else:
                    self._slots.succeeded(1)
                    return reply, attempts
            failure = replace(error.failure, attempts=attempts)
            if not failure.retryable:
                raise CallFailed(failure) from error
            if failure.origin == "transport":
                # The call was lost, not slow: its clock starts again. A
                # row that keeps taking its system down must end, though.
                lost += 1
                if lost > _MAX_LOST_CALLS:
                    raise CallFailed(failure) from error
                self._close_gate(failure.message)
                await asyncio.sleep(_backoff(lost, 0.02, 2.0))
                continue
            if failure.reason == "RESOURCE_EXHAUSTED":
                self._slots.exhausted()
            pause = error.retry_delay or _backoff(attempts, 0.1, 5.0)
            remaining -= self._clock() - started + pause
            if remaining <= 0:
                raise CallFailed(failure) from error
            await asyncio.sleep(pause)

    def _close_gate(self, reason: str) -> None:
        if self._reconnecting is None or self._reconnecting.done():
            self._gate.clear()
            self._reconnecting = asyncio.create_task(self._reconnect(reason))
            self._reconnecting.add_done_callback(self._reconnected)

    async def _reconnect(self, reason: str) -> None:
        """Wait for the system to come back, at most as long as the plan allows."""
        since = self._clock()
        announced = False
        while not await self._wait_connected(_WAIT_BEFORE_WAITING_S):
            if not announced:
                self._set_waiting(self._name, f'system "{self._name}" is away: {reason}')
                announced = True
            if self._clock() - since > self._plan.wait_timeout:
                raise RunFailed(
                    Failure(
                        "transport",
                        "SYSTEM_GONE",
                        f'system "{self._name}" stayed away for {self._plan.wait_timeout:g}s: '
                        f"{reason}. Start it, then: cbench resume {self._plan.run_id}",
                    )
                )
            # A caller that answers at once must not turn this into a busy loop.
            await asyncio.sleep(0.05)
        if announced:
            self._set_waiting(self._name, None)
        self._gate.set()
        self._reopened()

    def _reconnected(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            # Calls that wait at the gate fail with this reason.
            self._gone = error
            self._gate.set()


def _backoff(attempt: int, first: float, most: float) -> float:
    """Grow the pause with every attempt, with jitter so that callers spread out."""
    return min(most, first * float(2 ** min(attempt - 1, 16))) * random.uniform(0.5, 1.0)
