"""The retry rule: which failed calls are tried again, when, and how long a system is waited for."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import TypeVar

from cbench_server.errors import CallFailed, RunFailed
from cbench_server.results import Failure
from cbench_server.runs.plan import Plan
from cbench_server.runs.slots import Slots

T = TypeVar("T")

_MAX_LOST_CALLS = 8
_MAX_DEATHS = 2
# A system that is back sooner has not died: only the connection broke.
_BLINK_S = 0.25
_WAIT_BEFORE_WAITING_S = 1.0

_inside: ContextVar[bool] = ContextVar("inside a call", default=False)


class Retry:
    """Repeats calls to one system; while it is away, all of them wait at one gate.

    Calls that were in flight when the system died are made again one by one, and
    before any other, so that only the one that takes it down meets its next death.

    Args:
        slots: Learn from what the system answers how many calls it can take.
        wait_connected: Waits until the system is there, at most so many seconds.
        set_waiting: Told why the system is away, and None when it is back.
        reopened: Called when a system that was away is back.
        gone: Called with why, when a system stayed away too long.
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
        gone: Callable[[BaseException], None],
    ) -> None:
        self._name = name
        self._plan = plan
        self._slots = slots
        self._clock = clock
        self._wait_connected = wait_connected
        self._set_waiting = set_waiting
        self._reopened = reopened
        self._tell_gone = gone
        self._gate = asyncio.Event()
        self._gate.set()
        self._reconnecting: asyncio.Task[None] | None = None
        self._death: asyncio.Future[bool] | None = None
        self._gone: BaseException | None = None
        self._suspects = 0
        self._one_by_one = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether the system is there, as far as is known, and takes other calls."""
        return self._gate.is_set() and self._gone is None and not self._suspects

    async def call(
        self,
        attempt: Callable[[float], Awaitable[T]],
        failed: CallFailed | None = None,
        sent_at: float | None = None,
        made: int = 0,
    ) -> tuple[T, int]:
        """Make a call and return its result, and how many attempts that took.

        `attempt` makes one, in the seconds it is given; `failed` is how a first
        one, made elsewhere, ended, and `made` how many came before that. Raises CallFailed when
        no further one can help, and RunFailed when the system stayed away too long.
        """
        remaining = self._plan.row_timeout
        attempts, lost, deaths = made, 0, 0
        try:
            while True:
                attempts += 1
                error, failed = failed, None
                started = self._clock() if sent_at is None else sent_at
                sent_at = None
                if error is None:
                    async with self._turn(is_suspect=deaths > 0):
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
                    if await self._close_gate(failure.message) or error.has_died:
                        deaths += 1
                        self._suspects += deaths == 1
                    if deaths >= _MAX_DEATHS:
                        raise CallFailed(_deadly(failure)) from error
                    if lost > _MAX_LOST_CALLS:
                        raise CallFailed(failure) from error
                    await asyncio.sleep(_backoff(lost, 0.02, 2.0))
                    continue
                if failure.reason == "RESOURCE_EXHAUSTED":
                    self._slots.overloaded(started)
                # What a system asks for is the least, and may be nonsense.
                pause = max(error.retry_delay or 0.0, _backoff(attempts, 0.1, 5.0))
                remaining -= self._clock() - started + pause
                if remaining <= 0:
                    raise CallFailed(failure) from error
                await asyncio.sleep(pause)
        finally:
            self._suspects -= deaths > 0

    @asynccontextmanager
    async def _turn(self, *, is_suspect: bool) -> AsyncIterator[None]:
        """Wait until the system is there; a suspect also until no other suspect is called."""
        # A call in the middle of another (feeding a memory before its question) is part of it.
        alone = self._one_by_one if is_suspect and not _inside.get() else nullcontext()
        async with alone:
            await self._pass_gate()
            token = _inside.set(True)
            try:
                yield
            finally:
                _inside.reset(token)

    async def _pass_gate(self) -> None:
        if not self._gate.is_set():
            await self._gate.wait()
        if self._gone is not None:
            raise self._gone

    async def _close_gate(self, reason: str) -> bool:
        """Let calls wait until the system is back; say whether it died, or only blinked."""
        if self._death is None or self._reconnecting is None or self._reconnecting.done():
            self._gate.clear()
            self._death = asyncio.get_running_loop().create_future()
            self._reconnecting = asyncio.create_task(self._reconnect(reason, self._death))
            self._reconnecting.add_done_callback(self._reconnected)
        return await asyncio.shield(self._death)

    async def _reconnect(self, reason: str, death: asyncio.Future[bool]) -> None:
        """Wait for the system to come back, at most as long as the plan allows."""
        since = self._clock()
        announced = False
        is_back = await self._wait_connected(_BLINK_S)
        death.set_result(not is_back)
        while not (is_back or await self._wait_connected(_WAIT_BEFORE_WAITING_S)):
            if not announced:
                self._set_waiting(self._name, f'system "{self._name}" is away: {reason}')
                announced = True
            if self._clock() - since > self._plan.wait_timeout:
                raise RunFailed(
                    Failure(
                        "transport",
                        "SYSTEM_GONE",
                        f'system "{self._name}" stayed away for {self._plan.wait_timeout:g}s: '
                        f"{reason.rstrip('.')}. Start it, then resume the run.",
                    ),
                    who=f'system "{self._name}"',
                )
            # A caller that answers at once must not turn this into a busy loop.
            await asyncio.sleep(0.05)
        if announced:
            self._set_waiting(self._name, None)
        self._gate.set()
        self._reopened()

    def _reconnected(self, task: asyncio.Task[None]) -> None:
        if self._death is not None and not self._death.done():
            self._death.set_result(False)
        if not task.cancelled() and (error := task.exception()):
            # Calls that wait at the gate fail with this reason; there may be none.
            self._gone = error
            self._gate.set()
            self._tell_gone(error)


def _deadly(failure: Failure) -> Failure:
    times = "twice" if _MAX_DEATHS == 2 else f"{_MAX_DEATHS} times"
    return replace(failure, message=f"the system died {times} with this row: {failure.message}")


def _backoff(attempt: int, first: float, most: float) -> float:
    """Grow the pause with every attempt, with jitter so that callers spread out."""
    return min(most, first * float(2 ** min(attempt - 1, 16))) * random.uniform(0.5, 1.0)
