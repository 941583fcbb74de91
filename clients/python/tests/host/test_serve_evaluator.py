"""Serving evaluators: scores, assessments, refusals."""

from typing import Any

import grpc
import grpc.aio
import pytest

from cbench_client._gen.cbench.v1 import evaluator_pb2, failure_pb2
from cbench_client._gen.cbench.v1.evaluator_pb2_grpc import EvaluatorStub
from cbench_client.messages import convert
from tests.fixtures.serving import Length, failure_in, serving


class Judge:
    name = "judge"

    async def assess(self, original: Any, processed: Any, options: dict[str, Any]) -> Any:
        if options.get("broken"):
            raise ConnectionError("the judge is down")
        return {"scores": {"f1": 0.5}, "details": {"model": options["model"]}}


def pair(**fields: Any) -> evaluator_pb2.ScoreRequest:
    message = evaluator_pb2.ScoreRequest(**fields)
    convert.example_to_proto({"answer": "abc"}, message.original)
    convert.example_to_proto({"response": "xyz"}, message.processed)
    return message


async def test_an_evaluator_scores_and_describes_itself() -> None:
    async with serving(Length()) as channel:
        stub = EvaluatorStub(channel)
        reply = await stub.Score(pair())
        described = await stub.Describe(evaluator_pb2.EvaluatorDescribeRequest())
    assert dict(reply.scores) == {"same_length": 1.0}
    (info,) = described.evaluators
    assert (info.name, info.version, info.scores[0].name) == ("length", "3", "same_length")
    assert list(info.required_fields) == ["answer"]


async def test_an_assessment_brings_its_details() -> None:
    async with serving(Length(), Judge()) as channel:
        options = {"model": convert.value_to_proto("m")}
        reply = await EvaluatorStub(channel).Score(pair(evaluator="judge", options=options))
    assert dict(reply.scores) == {"f1": 0.5}
    assert reply.details["model"].string_value == "m"


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("length", {"model": "m"}, grpc.StatusCode.INVALID_ARGUMENT),
        ("judge", {"broken": True}, grpc.StatusCode.INTERNAL),
        ("judgment", {}, grpc.StatusCode.NOT_FOUND),
    ],
    ids=["takes-no-options", "broken", "unknown"],
)
async def test_an_evaluator_refuses(
    name: str, options: dict[str, Any], code: grpc.StatusCode
) -> None:
    values = {key: convert.value_to_proto(value) for key, value in options.items()}
    async with serving(Length(), Judge()) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await EvaluatorStub(channel).Score(pair(evaluator=name, options=values))
    assert caught.value.code() is code
    assert failure_in(caught.value).origin == failure_pb2.FAILURE_ORIGIN_EVALUATOR
