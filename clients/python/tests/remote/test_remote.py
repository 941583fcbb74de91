"""Remote objects against real servers in a thread of their own."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client import (
    RemoteEvaluator,
    RemoteFailure,
    RemoteMemorySystem,
    RemoteSystem,
    Unreachable,
)
from cbench_client._gen.cbench.v1 import (
    evaluator_pb2,
    evaluator_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    system_pb2,
    system_pb2_grpc,
)
from cbench_client.errors import InsecureToken


class Systems(system_pb2_grpc.SystemServicer):
    """Serves some systems; `faults` are statuses to give before the first answer."""

    def __init__(self, *names: str, streams: bool = False) -> None:
        self.names = names
        self.streams = streams
        self.faults: list[grpc.StatusCode] = []
        self.call_ids: list[str] = []
        self.garbled = 0

    async def Describe(self, request: Any, context: Any) -> system_pb2.SystemDescribeResponse:
        response = system_pb2.SystemDescribeResponse()
        for name in self.names:
            info = response.systems.add(name=name, version=f"{name}-1")
            info.capabilities.append(system_pb2.CAPABILITY_CONVERSATION)
            if self.streams:
                info.capabilities.append(system_pb2.CAPABILITY_STREAM)
        return response

    async def Process(self, request: Any, context: Any) -> system_pb2.ProcessResponse:
        self.call_ids.append(request.call_id)
        if self.faults:
            await context.abort(self.faults.pop(0), "not now")
        response = system_pb2.ProcessResponse(carried_fields=["id"])
        response.fields[
            "response"
        ].string_value = f"{request.system}: {request.example.fields['question'].string_value}"
        response.fields["options"].map_value.fields.MergeFrom(request.options)
        response.usage.prompt_tokens = 3
        return response

    async def ProcessStream(
        self, requests: Any, context: Any
    ) -> AsyncIterator[system_pb2.ProcessStreamResponse]:
        async for _ in requests:
            self.garbled += 1
            await context.abort(grpc.StatusCode.INTERNAL, "the stream handler fell over")
        yield system_pb2.ProcessStreamResponse()

    async def ProcessConversation(
        self, request: Any, context: Any
    ) -> system_pb2.ProcessConversationResponse:
        response = system_pb2.ProcessConversationResponse()
        for turn in request.turns:
            response.replies.add(role="assistant", content=turn.content.upper())
        return response


class Memory(memory_pb2_grpc.MemorySystemServicer):
    """Remembers contents by scope."""

    def __init__(self) -> None:
        self.scopes: dict[str, list[str]] = {}

    async def Describe(self, request: Any, context: Any) -> memory_pb2.MemorySystemDescribeResponse:
        response = memory_pb2.MemorySystemDescribeResponse()
        response.systems.add(name="notes", version="2")
        return response

    async def Reset(self, request: Any, context: Any) -> memory_pb2.ResetResponse:
        self.scopes.pop(request.scope, None)
        return memory_pb2.ResetResponse()

    async def Ingest(self, request: Any, context: Any) -> memory_pb2.IngestResponse:
        self.scopes.setdefault(request.scope, []).extend(turn.content for turn in request.turns)
        return memory_pb2.IngestResponse(stored_bytes=len(request.turns))

    async def Query(self, request: Any, context: Any) -> memory_pb2.QueryResponse:
        response = memory_pb2.QueryResponse(
            response=" ".join(self.scopes.get(request.scope, [])), context_tokens=request.budget
        )
        response.metadata["asked_at"].string_value = request.asked_at
        response.retrieval_time.FromMilliseconds(40)
        return response


class Evaluators(evaluator_pb2_grpc.EvaluatorServicer):
    """Serves one evaluator that compares answers."""

    async def Describe(self, request: Any, context: Any) -> evaluator_pb2.EvaluatorDescribeResponse:
        response = evaluator_pb2.EvaluatorDescribeResponse()
        response.evaluators.add(name="exact-match", version="3")
        return response

    async def Score(self, request: Any, context: Any) -> evaluator_pb2.ScoreResponse:
        if request.evaluator not in ("exact-match", "exact_match"):
            await context.abort(grpc.StatusCode.NOT_FOUND, f'no evaluator "{request.evaluator}"')
        wanted = request.original.fields["answer"].string_value
        given = request.processed.fields["response"].string_value
        response = evaluator_pb2.ScoreResponse(explanation=f"{given} / {wanted}")
        response.scores["exact"] = float(wanted == given)
        response.details["case"].CopyFrom(request.options["case"])
        return response


Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serve servicers on a loop in another thread, as another process would."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    servers: list[Any] = []

    def start(servicer: Any) -> str:
        async def go() -> str:
            server = grpc.aio.server()
            if isinstance(servicer, Systems):
                system_pb2_grpc.add_SystemServicer_to_server(servicer, server)
            elif isinstance(servicer, Memory):
                memory_pb2_grpc.add_MemorySystemServicer_to_server(servicer, server)
            else:
                evaluator_pb2_grpc.add_EvaluatorServicer_to_server(servicer, server)
            port = server.add_insecure_port("127.0.0.1:0")
            await server.start()
            servers.append(server)
            return f"127.0.0.1:{port}"

        return asyncio.run_coroutine_threadsafe(go(), loop).result()

    yield start
    for server in servers:
        asyncio.run_coroutine_threadsafe(server.stop(None), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_remote_system_is_a_system(serve: Serve) -> None:
    with RemoteSystem(serve(Systems("echo")), options={"rate": 0.5}) as system:
        assert system.name == "echo"
        assert system.version == "echo-1"
        processed = system.process({"id": 2**60, "question": "why"})
    assert processed == {
        "id": 2**60,
        "response": "echo: why",
        "options": {"rate": 0.5},
        "api_usage": {"prompt_tokens": 3},
    }


def test_a_name_of_ones_own_is_shown_and_not_sent(serve: Serve) -> None:
    with RemoteSystem(serve(Systems("echo")), name="mine") as system:
        assert system.name == "mine"
        assert system.process({"id": 1, "question": "q"})["response"] == "echo: q"


def test_one_of_several_is_chosen_by_target_or_by_name(serve: Serve) -> None:
    target = serve(Systems("a", "b"))
    with RemoteSystem(f"{target}/b") as by_target, RemoteSystem(target, name="a") as by_name:
        assert by_target.name == "b"
        assert by_target.process({"id": 1, "question": "q"})["response"] == "b: q"
        assert by_name.process({"id": 1, "question": "q"})["response"] == "a: q"
    with RemoteSystem(target) as system, pytest.raises(Unreachable, match="several systems: a, b"):
        system.process({"id": 1})
    with RemoteSystem(f"{target}/c") as system, pytest.raises(Unreachable, match='no system "c"'):
        _ = system.version


def test_nothing_is_dialled_before_the_first_use() -> None:
    system = RemoteSystem("127.0.0.1:1", name="nobody")
    assert system.name == "nobody"
    with pytest.raises(Unreachable, match="nothing listens"):
        system.process({"id": 1})
    with pytest.raises(InsecureToken):
        RemoteSystem("10.0.0.1:1", token="secret")


def test_failures_that_pass_are_retried_with_the_same_call_id(serve: Serve) -> None:
    servicer = Systems("echo")
    servicer.faults = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED]
    with RemoteSystem(serve(servicer)) as system:
        assert system.process({"id": 1, "question": "q"})["response"] == "echo: q"
        system.process({"id": 1, "question": "q"})
    first, *again, other = servicer.call_ids
    assert again == [first, first]
    assert other != first


def test_a_failure_that_stays_is_told_with_its_attempts(serve: Serve) -> None:
    servicer = Systems("echo")
    servicer.faults = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT]
    with RemoteSystem(serve(servicer)) as system, pytest.raises(RemoteFailure) as caught:
        system.process({"id": 1, "question": "q"})
    assert (caught.value.reason, caught.value.attempts) == ("INVALID_ARGUMENT", 2)
    servicer.faults = [grpc.StatusCode.UNAVAILABLE] * 1000
    target = serve(servicer)
    with RemoteSystem(target, timeout=0.5) as system, pytest.raises(RemoteFailure) as caught:
        system.process({"id": 1, "question": "q"})
    assert caught.value.origin == "transport"
    assert caught.value.attempts > 1


def test_a_call_that_lost_its_stream_is_repeated_off_the_stream(serve: Serve) -> None:
    servicer = Systems("echo", streams=True)
    with RemoteSystem(serve(servicer)) as system:
        assert system.process({"id": 1, "question": "q"})["response"] == "echo: q"
    assert servicer.garbled == 1


def test_a_conversation_is_answered(serve: Serve) -> None:
    with RemoteSystem(serve(Systems("echo"))) as system:
        replies = system.process_conversation([{"role": "user", "content": "hello"}])
    assert replies == [{"role": "assistant", "content": "HELLO"}]


def test_threads_and_loops_share_one_object(serve: Serve) -> None:
    with RemoteSystem(serve(Systems("echo"))) as system:

        async def several() -> list[dict[str, Any]]:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(system.aprocess({"id": i, "question": f"{i}"}))
                    for i in range(5)
                ]
            return [task.result() for task in tasks]

        for _ in range(2):
            replies = asyncio.run(several())
            assert [r["response"] for r in replies] == [f"echo: {i}" for i in range(5)]
        with ThreadPoolExecutor(8) as pool:
            examples = [{"id": i, "question": f"{i}"} for i in range(40)]
            answers = list(pool.map(system.process, examples))
    assert [answer["id"] for answer in answers] == list(range(40))


def test_a_closed_system_can_be_used_again(serve: Serve) -> None:
    system = RemoteSystem(serve(Systems("echo")))
    system.process({"id": 1, "question": "q"})
    system.close()
    assert system.process({"id": 1, "question": "q"})["response"] == "echo: q"
    system.close()


def test_a_memory_system_remembers_by_scope(serve: Serve) -> None:
    servicer = Memory()
    with RemoteMemorySystem(serve(servicer), scope="s1") as memory:
        assert (memory.name, memory.version) == ("notes", "2")
        memory.ingest([{"role": "user", "content": "tea"}, {"role": "user", "content": "please"}])
        other = memory.with_scope("s2")
        assert memory.query("what?", budget=9, asked_at="2026-01-01") == "tea please"
        assert other.query("what?", budget=0) == ""
        assert memory.last_reply == {
            "response": "tea please",
            "context_tokens": 9,
            "metadata": {"asked_at": "2026-01-01"},
            "retrieval_seconds": 0.04,
        }
        memory.reset()
        assert memory.query("what?", budget=1) == ""
    assert RemoteMemorySystem("h:1").scope != RemoteMemorySystem("h:1").scope


async def test_a_memory_system_says_what_ingesting_took(serve: Serve) -> None:
    async with RemoteMemorySystem(serve(Memory())) as memory:
        assert await memory.aingest([{"role": "user", "content": "tea"}]) == {"stored_bytes": 1}
        assert await memory.aquery("what?") == "tea"
        await memory.areset()
        assert await memory.aquery("what?") == ""


async def test_an_evaluator_scores_and_says_why(serve: Serve) -> None:
    target = serve(Evaluators())
    original, processed = {"id": 1, "answer": "x"}, {"id": 1, "response": "x"}
    async with RemoteEvaluator(target, "exact_match", options={"case": True}) as evaluator:
        assert evaluator.name == "exact_match"
        assert await evaluator.ascore(original, processed) == {"exact": 1.0}
        assessment = await evaluator.assess(original, processed)
        assert assessment.scores == {"exact": 1.0}
        assert assessment.details == {"case": True, "explanation": "x / x"}


def test_an_evaluator_is_found_when_it_is_the_only_one(serve: Serve) -> None:
    target = serve(Evaluators())
    with RemoteEvaluator(target, options={"case": 1}) as evaluator:
        assert evaluator.name == "exact-match"
        assert evaluator.version == "3"
        assert evaluator.score({"answer": "x"}, {"response": "y"}) == {"exact": 0.0}
    with (
        RemoteEvaluator(target, "rouge") as evaluator,
        pytest.raises(Unreachable, match=r'no evaluator "rouge"\. It serves: exact-match'),
    ):
        evaluator.score({"answer": "x"}, {"response": "y"})
