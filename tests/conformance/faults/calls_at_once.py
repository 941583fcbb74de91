"""Faults with deadlines, cancellation, call ids and limits."""

import asyncio
import time
from typing import Any

from faults.registry import fault

from cbench_client.errors import RemoteFailure
from cbench_client.host import calls, limits, offers


@fault
def nobody_looks_at_the_clock() -> None:
    async def untimed(self: Any, reply: Any, *arguments: Any, **offered: Any) -> Any:
        return await self(*arguments, **offered)

    offers.UserMethod.timed = untimed


@fault
def waiting_counts_as_work() -> None:
    arrived: dict[Any, int] = {}
    submit, settle = limits.Offer.submit, calls.Job.settle

    def noting(self: Any, kind: str, job: Any) -> None:
        arrived[job] = time.monotonic_ns()
        submit(self, kind, job)

    def from_arrival(self: Any, failure: RemoteFailure | None) -> None:
        if self in arrived and "handler_time" in self.reply.DESCRIPTOR.fields_by_name:
            self.reply.handler_time.FromNanoseconds(time.monotonic_ns() - arrived.pop(self))
        settle(self, failure)

    limits.Offer.submit = noting
    calls.Job.settle = from_arrival


@fault
def cancellation_does_not_arrive() -> None:
    def abandon(self: Any, failure: RemoteFailure) -> None:
        self.settle(failure)

    calls.Job.abandon = abandon


@fault
def deadlines_are_ignored() -> None:
    calls.Job.expire = lambda self: None


@fault
def deadlines_come_early() -> None:
    init = calls.CurrentCall.__init__

    def hurried(self: Any, call_id: str, timeout: float | None) -> None:
        init(self, call_id, None if timeout is None else timeout / 1000)

    calls.CurrentCall.__init__ = hurried


@fault
def waiting_calls_run_anyway() -> None:
    async def answer(self: Any, kind: str, job: Any) -> None:
        calls.enter_call(job.call)
        job.has_begun = True
        await self._adapter.answers[kind](job.request, job.reply)
        self._running -= 1
        self._start_next()
        job.settle(None)

    def start_next(self: Any) -> None:
        while self._waiting and self._running < self._adapter.limit:
            job, kind = self._waiting.popleft()
            self._start(kind, job)

    limits.Offer._answer = answer
    limits.Offer._start_next = start_next
    limits.Offer._forget = lambda self, job: self._jobs.pop(job.call.call_id, None)


@fault
def duplicates_are_taken() -> None:
    submit = limits.Offer.submit

    def forgetful(self: Any, kind: str, job: Any) -> None:
        self._jobs.clear()
        submit(self, kind, job)

    limits.Offer.submit = forgetful


@fault
def ids_are_kept_for_ever() -> None:
    limits.Offer._forget = lambda self, job: None


@fault
def no_limit() -> None:
    init = limits.Offer.__init__

    def unlimited(self: Any, adapter: Any) -> None:
        adapter.limit = 10**6
        init(self, adapter)

    limits.Offer.__init__ = unlimited


@fault
def one_at_a_time() -> None:
    lock = asyncio.Lock()
    answer = limits.Offer._answer

    async def alone(self: Any, kind: str, job: Any) -> None:
        if self._adapter.name == "conformance-probe":
            await answer(self, kind, job)
            return
        async with lock:
            await answer(self, kind, job)

    limits.Offer._answer = alone
