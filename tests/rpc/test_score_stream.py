"""The daemon's Evaluator.ScoreStream, over a real socket."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1 import evaluator_pb2 as pb
from cbench_client._gen.cbench.v1.evaluator_pb2_grpc import EvaluatorStub
from cbench_client.messages import convert
from cbench_server.daemon.embedded import embedded

SLOW = """
import time
from cbench_server.registry import register_evaluator

class Slow:
    name = "slow"
    placement = "thread"
    def score(self, original, processed):
        time.sleep(float(processed["response"]))
        return {"slept": 1.0}

register_evaluator("slow", Slow)
"""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "slow_evaluator.py").write_text(SLOW)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        with embedded(imports=["slow_evaluator"], home=str(folder / "home")) as found:
            yield found


@pytest.fixture
async def stream(target: str) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(target) as channel:
        yield EvaluatorStub(channel).ScoreStream()


def call(call_id: str, evaluator: str, response: str, timeout: float | None = None) -> pb.ScoreCall:
    made = pb.ScoreCall(call_id=call_id)
    made.request.evaluator = evaluator
    convert.example_to_proto({"id": 1, "context": "", "answer": "Paris"}, made.request.original)
    convert.example_to_proto({"id": 1, "response": response}, made.request.processed)
    if timeout is not None:
        made.timeout.FromNanoseconds(round(timeout * 1e9))
    return made


async def outcomes(stream: Any, count: int) -> dict[str, pb.ScoreOutcome]:
    found: dict[str, pb.ScoreOutcome] = {}
    while len(found) < count:
        message = await stream.read()
        assert message is not grpc.aio.EOF
        found.update({outcome.call_id: outcome for outcome in message.outcomes})
    return found


async def test_many_calls_are_answered_each_once(stream: Any) -> None:
    calls = [call(f"c{n}", "answer-quality", "Paris" if n % 2 else "Rome") for n in range(300)]
    await stream.write(pb.ScoreStreamRequest(calls=calls[:200]))
    await stream.write(pb.ScoreStreamRequest(calls=calls[200:]))
    await stream.done_writing()
    found = await outcomes(stream, 300)
    assert await stream.read() is grpc.aio.EOF
    assert [found[f"c{n}"].response.scores["f1"] for n in range(4)] == [0.0, 1.0, 0.0, 1.0]


async def test_failures_are_outcomes_with_reasons(stream: Any) -> None:
    await stream.write(
        pb.ScoreStreamRequest(
            calls=[
                call("unknown", "answer-qualty", "x"),
                call("late", "slow", "30", timeout=0.1),
                call("fine", "answer-quality", "Paris"),
            ]
        )
    )
    found = await outcomes(stream, 3)
    assert found["unknown"].failure.reason == "UNKNOWN_EVALUATOR"
    assert "answer-quality" in found["unknown"].failure.message
    assert found["late"].failure.reason == "DEADLINE_EXCEEDED"
    assert found["fine"].response.scores["exact_match"] == 1.0


async def test_a_cancellation_is_heard_behind_more_calls_than_run_at_once(stream: Any) -> None:
    slow = [call(f"s{n}", "slow", "0.2") for n in range(70)]
    slow.append(call("last", "slow", "60"))
    await stream.write(pb.ScoreStreamRequest(calls=slow))
    await stream.write(pb.ScoreStreamRequest(cancel_call_ids=["last"]))
    await stream.done_writing()
    found = await outcomes(stream, 70)
    assert "last" not in found
    assert await stream.read() is grpc.aio.EOF
