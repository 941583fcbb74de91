"""Serving memory systems: scopes, repeated ingests, what a query may return."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1 import memory_pb2
from cbench_client._gen.cbench.v1.memory_pb2_grpc import MemorySystemStub
from cbench_client.messages import convert
from tests.fixtures.serving import Notes, serving


class ScopedNotes:
    """Keeps the scopes apart itself."""

    name = "scoped"

    def __init__(self) -> None:
        self.scopes: dict[str, list[str]] = {}

    async def reset(self, scope: str) -> None:
        self.scopes.pop(scope, None)

    async def ingest(self, turns: list[dict[str, Any]], *, scope: str) -> dict[str, Any]:
        self.scopes.setdefault(scope, []).extend(turn["content"] for turn in turns)
        return {"stored_bytes": 5, "usage": {"prompt_tokens": 2}}

    async def query(
        self, question: str, *, scope: str, budget: int | None, asked_at: str | None
    ) -> dict[str, Any]:
        return {
            "response": "|".join(self.scopes.get(scope, [])),
            "context": f"{budget} {asked_at}",
            "context_tokens": 2,
            "usage": {"completion_tokens": 4},
            "stored_bytes": 5,
            "metadata": {"k": [1]},
            "retrieval_seconds": 0.25,
        }


@asynccontextmanager
async def memory(system: Any) -> AsyncIterator[Any]:
    async with serving(system) as channel:
        yield MemorySystemStub(channel)


async def ingest(stub: Any, scope: str, text: str, call_id: str = "") -> Any:
    request = memory_pb2.IngestRequest(scope=scope, call_id=call_id)
    convert.turns_to_proto([{"role": "user", "content": text}], request.turns)
    return await stub.Ingest(request)


async def recall(stub: Any, scope: str) -> str:
    reply = await stub.Query(memory_pb2.QueryRequest(scope=scope, question="what?"))
    return str(reply.response)


@pytest.mark.parametrize("system", [Notes, ScopedNotes()], ids=["class", "scoped-object"])
async def test_scopes_do_not_see_each_other(system: Any) -> None:
    async with memory(system) as stub:
        await ingest(stub, "a", "apple")
        await ingest(stub, "b", "pear")
        assert (await recall(stub, "a"), await recall(stub, "b")) == ("apple", "pear")
        await stub.Reset(memory_pb2.ResetRequest(scope="a"))
        assert (await recall(stub, "a"), await recall(stub, "b")) == ("", "pear")


@pytest.mark.parametrize(
    "system", [Notes, Notes(), ScopedNotes()], ids=["class", "bare-object", "scoped-object"]
)
async def test_a_repeated_ingest_stores_nothing_new_until_reset(system: Any) -> None:
    async with memory(system) as stub:
        first = await ingest(stub, "a", "apple", "id-1")
        assert await ingest(stub, "a", "apple", "id-1") == first
        await ingest(stub, "a", "pear", "id-2")
        assert await recall(stub, "a") == "apple|pear"
        await stub.Reset(memory_pb2.ResetRequest(scope="a"))
        await ingest(stub, "a", "apple", "id-1")
        assert await recall(stub, "a") == "apple"


async def test_a_bare_object_serves_one_scope_and_says_how_to_serve_more() -> None:
    async with memory(Notes()) as stub:
        await ingest(stub, "a", "apple")
        with pytest.raises(grpc.aio.AioRpcError, match="pass the class") as caught:
            await ingest(stub, "b", "pear")
        await stub.Reset(memory_pb2.ResetRequest(scope="b"))
        assert await recall(stub, "a") == "apple"
        await stub.Reset(memory_pb2.ResetRequest(scope="a"))
        await ingest(stub, "b", "pear")
        assert await recall(stub, "b") == "pear"
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_resetting_an_unknown_scope_succeeds() -> None:
    async with memory(Notes) as stub:
        await stub.Reset(memory_pb2.ResetRequest(scope="never"))


async def test_a_query_may_return_more_than_text() -> None:
    async with memory(ScopedNotes()) as stub:
        stored = await ingest(stub, "a", "apple")
        request = memory_pb2.QueryRequest(scope="a", question="?", budget=9, asked_at="2024-01-02")
        reply = await stub.Query(request)
    assert (stored.stored_bytes, stored.usage.prompt_tokens) == (5, 2)
    assert (reply.response, reply.context) == ("apple", "9 2024-01-02")
    assert (reply.context_tokens, reply.stored_bytes) == (2, 5)
    assert reply.usage.completion_tokens == 4
    assert reply.retrieval_time.ToMilliseconds() == 250
    assert convert.fields_from_proto(reply.metadata) == {"k": [1]}


async def test_queries_of_one_scope_run_side_by_side() -> None:
    meeting = threading.Barrier(3)

    class Meeting(Notes):
        def query(self, question: str) -> str:
            meeting.wait(20)
            return "met"

    async with memory(Meeting) as stub:
        assert await asyncio.gather(*(recall(stub, "a") for _ in range(3))) == ["met"] * 3


async def test_an_answer_that_is_none_is_a_failure() -> None:
    class Silent(Notes):
        def query(self, question: str) -> Any:
            return None

    async with memory(Silent) as stub:
        with pytest.raises(grpc.aio.AioRpcError, match="NoneType"):
            await recall(stub, "a")


async def test_a_bare_object_announces_that_it_takes_one_call() -> None:
    async with memory(Notes()) as stub:
        reply = await stub.Describe(memory_pb2.MemorySystemDescribeRequest())
    (info,) = reply.systems
    assert (info.name, info.max_concurrency, info.description) == ("notes", 1, "Remembers all.")
