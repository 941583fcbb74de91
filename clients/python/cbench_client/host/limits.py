"""Limits of a served object: how many calls it has at once, and how many wait."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from cbench_client.errors import RemoteFailure
from cbench_client.host.calls import Job, enter_call
from cbench_client.host.offers import failure_of, inside

# Calls that may wait, as a multiple of those that may run.
QUEUE_FACTOR = 4
_NEVER = float("inf")


class Adapter(Protocol):
    """A user's object, ready to answer."""

    name: str
    origin: str
    limit: int
    close: Callable[[], None]
    answers: dict[str, Any]
    threaded: Mapping[str, tuple[Any, Any]]
    """Of the kinds that need no task: what begins a call, and what starts a thread with it."""


class Offer:
    """One served object: runs up to its limit at once, and queues a bounded number more."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._running = 0
        self._waiting: deque[tuple[Job, str]] = deque()
        self._bound = adapter.limit * QUEUE_FACTOR
        self._jobs: dict[str, Job] = {}
        self._deadlines: dict[Job, float] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = _NEVER
        self.room = asyncio.Event()
        self.room.set()

    @property
    def is_full(self) -> bool:
        """Whether one more call would be refused."""
        return self._running >= self._adapter.limit and len(self._waiting) >= self._bound

    def submit(self, kind: str, job: Job) -> None:
        """Start or queue a call. Raises `RemoteFailure` for one that is refused."""
        call_id = job.call.call_id
        if call_id and call_id in self._jobs:
            raise RemoteFailure(
                f'call "{call_id}" is still in flight',
                origin=self._adapter.origin,
                reason="ALREADY_EXISTS",
            )
        if self.is_full:
            raise RemoteFailure(
                f'"{self._adapter.name}" runs {self._adapter.limit} calls at once and has '
                f"{self._bound} more waiting. Send fewer, or try again later.",
                origin=self._adapter.origin,
                reason="RESOURCE_EXHAUSTED",
                retryable=True,
            )
        if call_id:
            self._jobs[call_id] = job
        job.forget = self._forget
        deadline = job.call.deadline
        if deadline is not None:
            self._deadlines[job] = deadline
            # One timer for all: with equal timeouts a new call is never the next to expire.
            if deadline < self._sweep_at:
                self._sweep_again_at(deadline)
        if self._running < self._adapter.limit:
            self._start(kind, job)
        else:
            self._waiting.append((job, kind))
            if self.is_full:
                self.room.clear()

    def _start(self, kind: str, job: Job) -> None:
        self._running += 1
        threaded = self._adapter.threaded.get(kind)
        if threaded is None:
            job.task = asyncio.get_running_loop().create_task(self._answer(kind, job))
        else:
            self._hand_to_thread(*threaded, job)

    def _hand_to_thread(self, begin: Any, start: Any, job: Job) -> None:
        """Have a thread answer; a task would only wait for it, turn by turn of the loop."""
        job.has_begun = True
        try:
            work, end = begin(job.request, job.reply)
        except Exception as error:
            # Whoever submits it must know the call before its outcome comes.
            asyncio.get_running_loop().call_soon(self._end, job, error)
            return

        def ended(value: Any, error: BaseException | None) -> None:
            if error is None and not job.settled:
                try:
                    end(value)
                except Exception as unfit:
                    error = unfit
            self._end(job, error)

        start(partial(inside, job.call, work), ended)

    async def _answer(self, kind: str, job: Job) -> None:
        enter_call(job.call)
        raised = None
        job.has_begun = True
        try:
            if not job.settled:
                await self._adapter.answers[kind](job.request, job.reply)
        except BaseException as error:
            # A task's edge: even SystemExit is the user's failure, not our end.
            raised = error
        self._end(job, raised)

    def _end(self, job: Job, raised: BaseException | None) -> None:
        self._running -= 1
        self._start_next()
        job.settle(None if raised is None else failure_of(raised, self._adapter.origin))

    def _start_next(self) -> None:
        while self._waiting and self._running < self._adapter.limit:
            job, kind = self._waiting.popleft()
            if not job.settled:
                self._start(kind, job)
        if not self.is_full:
            self.room.set()

    def _sweep_again_at(self, deadline: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._sweep_at = deadline
        if deadline != _NEVER:
            remaining = max(0.0, deadline - time.monotonic())
            self._sweep = asyncio.get_running_loop().call_later(remaining, self._expire)

    def _expire(self) -> None:
        now = time.monotonic()
        for job in [job for job, deadline in self._deadlines.items() if deadline <= now]:
            self._deadlines.pop(job, None)
            job.expire()
        self._sweep_again_at(min(self._deadlines.values(), default=_NEVER))

    def _forget(self, job: Job) -> None:
        self._jobs.pop(job.call.call_id, None)
        self._deadlines.pop(job, None)
        if job.task is None and not job.has_begun:
            self._waiting = deque(item for item in self._waiting if item[0] is not job)
            self.room.set()

    def close(self) -> None:
        """Stop waiting for user code."""
        self._sweep_again_at(_NEVER)
        self._adapter.close()
