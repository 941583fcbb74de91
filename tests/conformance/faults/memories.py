"""Faults of memory systems."""

import random
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

import program
from faults.registry import fault

from cbench_client.errors import RemoteFailure
from cbench_client.host import gate, limits, memory


def _query_through(change: Callable[[dict[str, Any]], Any]) -> None:
    query = program.Memory.query

    async def changed(
        self: Any, question: str, scope: str, budget: int | None, asked_at: str | None
    ) -> Any:
        return change(await query(self, question, scope, budget, asked_at))

    program.Memory.query = changed


@fault
def memory_lies() -> None:
    _query_through(lambda answer: {"response": "lie", "context": str(random.random())})

    async def ingest(self: Any, turns: Any, scope: str) -> Any:
        return {"stored_bytes": 10**6}

    program.Memory.ingest = ingest


@fault
def scopes_are_one() -> None:
    scope = memory.MemoryAdapter._scope

    def one(self: Any, name: str) -> Any:
        return scope(self, "")

    memory.MemoryAdapter._scope = one
    for name in ("ingest", "query", "reset"):
        _in_one_scope(name)


def _in_one_scope(name: str) -> None:
    method = getattr(program.Memory, name)
    if name == "reset":

        async def reset(self: Any, scope: str) -> None:
            await method(self, "")

        program.Memory.reset = reset
    elif name == "ingest":

        async def ingest(self: Any, turns: Any, scope: str) -> Any:
            return await method(self, turns, "")

        program.Memory.ingest = ingest
    else:

        async def query(self: Any, question: str, scope: str, budget: Any, asked_at: Any) -> Any:
            return await method(self, question, "", budget, asked_at)

        program.Memory.query = query


@fault
def reset_does_nothing() -> None:
    async def reset(self: Any, request: Any, reply: Any) -> None:
        return None

    memory.MemoryAdapter.reset = reset


class _Forgetful(dict[str, Any]):
    def get(self, *_: Any) -> Any:
        return None


@fault
def repeats_are_stored() -> None:
    init = memory._Scope.__init__

    def forgetful(self: Any) -> None:
        init(self)
        self.ingested = _Forgetful()

    memory._Scope.__init__ = forgetful


class _Lasting(dict[str, Any]):
    def clear(self) -> None:
        return None


@fault
def repeats_are_known_everywhere() -> None:
    init, everything = memory._Scope.__init__, _Lasting()

    def shared(self: Any) -> None:
        init(self)
        self.ingested = everything

    memory._Scope.__init__ = shared


@fault
def failed_ingests_are_remembered() -> None:
    ingest = memory.MemoryAdapter.ingest

    async def remembering(self: Any, request: Any, reply: Any) -> None:
        try:
            await ingest(self, request, reply)
        except RemoteFailure:
            self._scope(request.scope).ingested[request.call_id] = type(reply)()
            raise

    memory.MemoryAdapter.ingest = remembering


@fault
def the_empty_id_is_an_id() -> None:
    ingest = memory.MemoryAdapter.ingest

    async def strict(self: Any, request: Any, reply: Any) -> None:
        request.call_id = request.call_id or "empty"
        await ingest(self, request, reply)

    memory.MemoryAdapter.ingest = strict
    submit = limits.Offer.submit

    def named(self: Any, kind: str, job: Any) -> None:
        job.call.call_id = job.call.call_id or "empty"
        submit(self, kind, job)

    limits.Offer.submit = named


@fault
def ingests_run_side_by_side() -> None:
    @asynccontextmanager
    async def hold(self: Any, *, exclusive: bool) -> Any:
        yield

    gate.Gate.hold = hold


@fault
def budgets_are_zero() -> None:
    query = program.Memory.query

    async def poor(self: Any, question: str, scope: str, budget: Any, asked_at: Any) -> Any:
        return await query(self, question, scope, budget or 0, asked_at or "")

    program.Memory.query = poor
