"""ScoreInfo.direction: honoured, read from the boolean of our SDKs, and asked of all others."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc.aio
import pytest

from cbench_client import RemoteEvaluator, Unreachable
from cbench_client._gen.cbench.v1 import evaluator_pb2 as pb
from cbench_client._gen.cbench.v1 import evaluator_pb2_grpc

LOWER, HIGHER = pb.SCORE_DIRECTION_LOWER_IS_BETTER, pb.SCORE_DIRECTION_HIGHER_IS_BETTER


class Bare(evaluator_pb2_grpc.EvaluatorServicer):
    """An evaluator from the protos alone."""

    def __init__(self, score: pb.ScoreInfo, sdk: str) -> None:
        self._info = pb.EvaluatorInfo(name="bare", scores=[score])
        self._sdk = sdk

    async def Describe(
        self, request: pb.EvaluatorDescribeRequest, context: object
    ) -> pb.EvaluatorDescribeResponse:
        return pb.EvaluatorDescribeResponse(evaluators=[self._info], sdk=self._sdk)


@asynccontextmanager
async def serving(score: pb.ScoreInfo, sdk: str) -> AsyncIterator[str]:
    server = grpc.aio.server()
    evaluator_pb2_grpc.add_EvaluatorServicer_to_server(Bare(score, sdk), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    ("score", "sdk", "is_higher_better"),
    [
        (lambda: pb.ScoreInfo(name="s", direction=LOWER, higher_is_better=True), "", False),
        (lambda: pb.ScoreInfo(name="s", direction=HIGHER), "grpc-java", True),
        (lambda: pb.ScoreInfo(name="s", higher_is_better=True), "cbench-go/0.1.0", True),
        (lambda: pb.ScoreInfo(name="s"), "cbench-node/0.1.0", False),
    ],
    ids=["stated", "stated-without-the-boolean", "of-an-older-sdk", "lower-of-an-older-sdk"],
)
async def test_a_direction_is_known(
    score: Callable[[], pb.ScoreInfo], sdk: str, is_higher_better: bool
) -> None:
    async with serving(score(), sdk) as target:
        evaluator = RemoteEvaluator(target, "bare")
        await evaluator.connect()
        (info,) = evaluator.score_infos
        await evaluator.aclose()
    assert info.higher_is_better is is_higher_better


@pytest.mark.parametrize("sdk", ["", "grpc-java/1.76", "my-cbench-go/1"])
async def test_what_others_leave_out_is_asked_for(sdk: str) -> None:
    async with serving(pb.ScoreInfo(name="loss", higher_is_better=True), sdk) as target:
        evaluator = RemoteEvaluator(target, "bare")
        with pytest.raises(Unreachable, match='its score "loss" are better. Set ScoreInfo.dir'):
            await evaluator.connect()
        await evaluator.aclose()
