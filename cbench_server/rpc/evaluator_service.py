"""The Evaluator service for every registered evaluator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

from google.protobuf.message import Message

from cbench_client._gen.cbench.v1 import evaluator_pb2, evaluator_pb2_grpc
from cbench_client.errors import RemoteFailure, Unencodable
from cbench_client.host.calls import CurrentCall, Done, Job
from cbench_client.host.lane import Lane
from cbench_client.host.limits import Offer
from cbench_client.messages import convert as wire
from cbench_client.messages.options import options_to_proto
from cbench_server import __version__
from cbench_server.errors import CbenchError, InvalidInput, UnknownName
from cbench_server.limits import LONG_TEXT
from cbench_server.registry import Registry
from cbench_server.rpc.components import evaluator_info, score_response
from cbench_server.rpc.declared_options import builtin_options
from cbench_server.rpc.evaluator_factory import EvaluatorMaker
from cbench_server.rpc.specs import options_of
from cbench_server.runs.callers import current_caller
from cbench_server.scoring.placement import Scoring
from cbench_server.scoring.shares import SHARE
from cbench_server.types import Example

_MAX_IN_FLIGHT = 64


class EvaluatorService(evaluator_pb2_grpc.EvaluatorServicer):
    """Scores pairs for any client."""

    def __init__(self, registry: Registry, scoring: Scoring, maker: EvaluatorMaker) -> None:
        self._registry = registry
        self._scoring = scoring
        self._maker = maker

    async def Describe(
        self, request: evaluator_pb2.EvaluatorDescribeRequest, context: Any
    ) -> evaluator_pb2.EvaluatorDescribeResponse:
        return evaluator_pb2.EvaluatorDescribeResponse(
            evaluators=list_evaluators(self._registry), sdk=f"cbench-server/{__version__}"
        )

    async def Score(
        self, request: evaluator_pb2.ScoreRequest, context: Any
    ) -> evaluator_pb2.ScoreResponse:
        if not request.evaluator:
            known = ", ".join(self._registry.list("evaluator"))
            raise InvalidInput(f"name the evaluator; there are: {known}.", field="evaluator")
        _use_own_share()
        try:
            evaluator = await self._maker.make(request.evaluator, options_of(request.options))
        except UnknownName as error:
            error.field = "evaluator"
            raise
        if request.ByteSize() <= LONG_TEXT:
            original, processed = _pair(request)
        else:
            original, processed = await asyncio.to_thread(_pair, request)
        assessment = await self._scoring.assess(evaluator, original, processed)
        return score_response(assessment.scores, assessment.details)

    async def ScoreStream(
        self, request_iterator: AsyncIterator[evaluator_pb2.ScoreStreamRequest], context: Any
    ) -> None:
        """Answer many calls, with the SDK's own lane."""
        _use_own_share()
        lane = Lane(_ScoreCalls(self), evaluator_pb2.ScoreOutcome, 1, context.write)
        reading = asyncio.create_task(_read(request_iterator, lane))
        reading.add_done_callback(lambda _: lane.close())
        try:
            await lane.send()
            await reading
        finally:
            reading.cancel()
            lane.abandon()


def _use_own_share() -> None:
    """Take workers from the caller's share, whoever else has much to score."""
    caller = current_caller()
    SHARE.set(caller.name or caller.peer)


async def _read(requests: AsyncIterator[evaluator_pb2.ScoreStreamRequest], lane: Lane) -> None:
    async for request in requests:
        for call in request.calls:
            timeout = call.timeout if call.HasField("timeout") else None
            start = partial(lane.start, "score", call.request, call.call_id, timeout, "response")
            if not start(is_patient=True):
                await lane.room_for("score", call.request)
                start()
        for call_id in request.cancel_call_ids:
            lane.cancel(call_id)
        await lane.backlog_written()


def _pair(request: evaluator_pb2.ScoreRequest) -> tuple[Example, Example]:
    decode = wire.example_from_proto
    return decode(request.original), decode(request.processed)


class _ScoreCalls:
    """Calls to the daemon's evaluators over one stream, a bounded number of them at work."""

    name = "the daemon"
    origin = "evaluator"
    limit = _MAX_IN_FLIGHT
    threaded: Mapping[str, tuple[Any, Any]] = {}

    def __init__(self, service: EvaluatorService) -> None:
        self._service = service
        self.answers: dict[str, Any] = {"score": self._score}
        self.close: Callable[[], None] = lambda: None
        self._offer = Offer(self)

    def find(self, kind: str, request: Any) -> Offer:
        """Return the only one there is, for every name."""
        return self._offer

    def submit(
        self, kind: str, request: Any, reply: Message, call: CurrentCall, on_done: Done
    ) -> Job:
        """Start one call."""
        job = Job(request, reply, call, on_done)
        self._offer.submit(kind, job)
        return job

    async def _score(
        self, request: evaluator_pb2.ScoreRequest, reply: evaluator_pb2.ScoreResponse
    ) -> None:
        try:
            reply.CopyFrom(await self._service.Score(request, None))
        except (CbenchError, Unencodable) as error:
            raise RemoteFailure(str(error), origin="evaluator", reason=error.reason) from error


def list_evaluators(registry: Registry) -> list[evaluator_pb2.EvaluatorInfo]:
    """Describe the registered evaluators under their registered names."""
    infos = []
    for name in registry.list("evaluator"):
        info = evaluator_info(registry.get("evaluator", name))
        info.name = name
        options_to_proto(builtin_options(registry, "evaluator", name), info.declared_options)
        infos.append(info)
    return infos
