"""The Evaluator service for every registered evaluator."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from cbench_client import convert as wire
from cbench_client._gen.cbench.v1 import evaluator_pb2, evaluator_pb2_grpc
from cbench_client.errors import Unencodable
from cbench_server.errors import CbenchError, InvalidInput
from cbench_server.evaluator_making import EvaluatorMaker
from cbench_server.registry import Registry
from cbench_server.results import Failure
from cbench_server.rpc import convert
from cbench_server.scoring import Scoring
from cbench_server.version import __version__

_MAX_IN_FLIGHT = 64
_MAX_BATCH_BYTES = 1_000_000


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
            raise InvalidInput(f"name the evaluator; there are: {known}.")
        options = wire.fields_from_proto(request.options)
        evaluator = await self._maker.make(request.evaluator, options)
        original = wire.example_from_proto(request.original)
        processed = wire.example_from_proto(request.processed)
        assessment = await self._scoring.assess(evaluator, original, processed)
        return convert.score_response(assessment.scores, assessment.details)

    async def ScoreStream(
        self, request_iterator: AsyncIterator[evaluator_pb2.ScoreStreamRequest], context: Any
    ) -> AsyncIterator[evaluator_pb2.ScoreStreamResponse]:
        stream = _ScoreStream(self)
        reading = asyncio.create_task(stream.read(request_iterator))
        try:
            while (response := await stream.next_response()) is not None:
                yield response
        finally:
            reading.cancel()
            stream.cancel_all()


class _ScoreStream:
    """The calls of one stream, a bounded number of them at work."""

    def __init__(self, service: EvaluatorService) -> None:
        self._service = service
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._outcomes: deque[evaluator_pb2.ScoreOutcome] = deque()
        self._room = asyncio.Semaphore(_MAX_IN_FLIGHT)
        self._wake = asyncio.Event()
        self._is_read = False

    async def read(self, requests: AsyncIterator[evaluator_pb2.ScoreStreamRequest]) -> None:
        try:
            async for request in requests:
                for call_id in request.cancel_call_ids:
                    if task := self._tasks.get(call_id):
                        task.cancel()
                for call in request.calls:
                    await self._room.acquire()
                    self._begin(call)
        finally:
            self._is_read = True
            self._wake.set()

    def _begin(self, call: evaluator_pb2.ScoreCall) -> None:
        if call.call_id in self._tasks:
            self._room.release()
            message = f'a call "{call.call_id}" is still in flight.'
            self._fail(call.call_id, Failure("daemon", "ALREADY_EXISTS", message))
            return
        task = asyncio.create_task(self._score(call))
        self._tasks[call.call_id] = task
        task.add_done_callback(lambda _: self._ended(call.call_id))

    def _ended(self, call_id: str) -> None:
        self._tasks.pop(call_id, None)
        self._room.release()
        self._wake.set()

    async def _score(self, call: evaluator_pb2.ScoreCall) -> None:
        seconds = call.timeout.ToNanoseconds() / 1e9 if call.HasField("timeout") else None
        try:
            async with asyncio.timeout(seconds):
                response = await self._service.Score(call.request, None)
        except TimeoutError:
            message = f"not scored within {seconds:g}s."
            self._fail(call.call_id, Failure("evaluator", "DEADLINE_EXCEEDED", message))
        except (CbenchError, Unencodable) as error:
            self._fail(call.call_id, Failure("evaluator", error.reason, str(error)))
        else:
            outcome = evaluator_pb2.ScoreOutcome(call_id=call.call_id, response=response)
            self._outcomes.append(outcome)
            self._wake.set()

    def _fail(self, call_id: str, failure: Failure) -> None:
        outcome = evaluator_pb2.ScoreOutcome(call_id=call_id)
        convert.failure_to_proto(failure, outcome.failure)
        self._outcomes.append(outcome)
        self._wake.set()

    async def next_response(self) -> evaluator_pb2.ScoreStreamResponse | None:
        """Return what is ready; None once everything asked for has been answered."""
        while not self._outcomes:
            if self._is_read and not self._tasks:
                return None
            self._wake.clear()
            await self._wake.wait()
        response = evaluator_pb2.ScoreStreamResponse()
        size = 0
        while self._outcomes and size < _MAX_BATCH_BYTES:
            outcome = self._outcomes.popleft()
            size += outcome.ByteSize()
            response.outcomes.append(outcome)
        return response

    def cancel_all(self) -> None:
        for task in self._tasks.values():
            task.cancel()


def list_evaluators(registry: Registry) -> list[evaluator_pb2.EvaluatorInfo]:
    """Describe the registered evaluators under their registered names."""
    infos = []
    for name in registry.list("evaluator"):
        info = convert.evaluator_info(registry.get("evaluator", name))
        info.name = name
        infos.append(info)
    return infos
