"""The gRPC methods of a served process: decode, hand to the host, encode.

Messages arrive as bytes and are decoded here, so that one which is not what
it should be gets a status instead of a traceback in gRPC's log.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

from cbench_client._gen.cbench.v1 import (
    evaluator_pb2,
    failure_pb2,
    memory_pb2,
    system_pb2,
)
from cbench_client.errors import RemoteFailure
from cbench_client.host.calls import Trace
from cbench_client.host.host import Host
from cbench_client.host.lane import Lane, serialised
from cbench_client.messages import failures

FAILURE_METADATA = "cbench-failure-bin"
"""Trailing metadata in which a unary call that failed carries its `Failure`."""

# Peers refuse more than 8 kB of metadata, and text may triple on the way.
_MAX_DETAILS = 500
_MAX_STACK = 2_500

_CODES = {
    "UNKNOWN_SYSTEM": grpc.StatusCode.NOT_FOUND,
    "UNKNOWN_EVALUATOR": grpc.StatusCode.NOT_FOUND,
    "INVALID_ARGUMENT": grpc.StatusCode.INVALID_ARGUMENT,
    "ALREADY_EXISTS": grpc.StatusCode.ALREADY_EXISTS,
    "RESOURCE_EXHAUSTED": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "FAILED_PRECONDITION": grpc.StatusCode.FAILED_PRECONDITION,
    "DEADLINE_EXCEEDED": grpc.StatusCode.DEADLINE_EXCEEDED,
    "CANCELLED": grpc.StatusCode.CANCELLED,
    "UNIMPLEMENTED": grpc.StatusCode.UNIMPLEMENTED,
    "UNAVAILABLE": grpc.StatusCode.UNAVAILABLE,
}

_EOF: Any = cast(Any, grpc.aio).EOF
_Context = grpc.aio.ServicerContext[Any, Any]


class Services:
    """Every method of the services a host has something for."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lanes: set[Lane] = set()
        self._active = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.names: list[str] = []

    def add_to(self, server: grpc.aio.Server) -> None:
        """Register what the host can answer."""
        host = self._host
        systems, memories = host.describe_systems(), host.describe_memory()
        evaluators = host.describe_evaluators()
        if systems.systems:
            methods = {
                "Describe": _constant(systems),
                "Process": self._unary("process", system_pb2.ProcessRequest),
                "ProcessConversation": self._unary(
                    "converse", system_pb2.ProcessConversationRequest
                ),
                "ProcessStream": self._stream(
                    "process",
                    system_pb2.ProcessStreamRequest,
                    system_pb2.ProcessOutcome,
                    lambda call: call.request.call_id,
                ),
            }
            self._register(server, "cbench.v1.System", methods)
        if memories.systems:
            methods = {
                "Describe": _constant(memories),
                "Reset": self._unary("reset", memory_pb2.ResetRequest),
                "Ingest": self._unary("ingest", memory_pb2.IngestRequest),
                "Query": self._unary("query", memory_pb2.QueryRequest),
            }
            self._register(server, "cbench.v1.MemorySystem", methods)
        if evaluators.evaluators:
            methods = {
                "Describe": _constant(evaluators),
                "Score": self._unary("score", evaluator_pb2.ScoreRequest),
                "ScoreStream": self._stream(
                    "score",
                    evaluator_pb2.ScoreStreamRequest,
                    evaluator_pb2.ScoreOutcome,
                    lambda call: call.call_id,
                ),
            }
            self._register(server, "cbench.v1.Evaluator", methods)

    @property
    def is_idle(self) -> bool:
        """Whether no call is in progress."""
        return self._idle.is_set()

    async def drain(self) -> None:
        """Take no new calls, and wait until those held are answered."""
        self._host.is_draining = True
        for lane in self._lanes:
            lane.close()
        await self._idle.wait()

    def _register(self, server: grpc.aio.Server, service: str, methods: dict[str, Any]) -> None:
        self.names.append(service)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))

    def _unary(self, kind: str, request_type: Callable[[], Message]) -> Any:
        async def answer(data: bytes, context: _Context) -> bytes:
            request = request_type()
            try:
                request.ParseFromString(data)
            except DecodeError as error:
                await _abort(context, _undecodable(request, error))
            try:
                trace = _trace_of(context)
                reply = await self._host.run(kind, request, context.time_remaining(), trace)
            except RemoteFailure as failure:
                await _abort(context, failure)
            result = serialised(reply)
            if isinstance(result, RemoteFailure):
                await _abort(context, result)
            return result

        return grpc.unary_unary_rpc_method_handler(self._counted(answer))

    def _stream(
        self,
        kind: str,
        request_type: Callable[[], Any],
        outcome_type: Callable[..., Message],
        id_of: Callable[[Any], str],
    ) -> Any:
        async def read(context: _Context, lane: Lane) -> RemoteFailure | None:
            while (data := await context.read()) is not _EOF:
                message = request_type()
                try:
                    message.ParseFromString(data)
                except DecodeError as error:
                    return _undecodable(message, error)
                has_room = True
                for call in message.calls:
                    timeout = call.timeout if call.HasField("timeout") else None
                    trace = (call.traceparent, call.tracestate)
                    work = (kind, call.request, id_of(call), timeout, "response", trace)
                    if not lane.start(*work, is_patient=has_room):
                        # After a wait that brought no room the rest of the message gets no wait.
                        has_room = await lane.room_for(kind, call.request)
                        lane.start(*work)
                for call_id in message.cancel_call_ids:
                    lane.cancel(call_id)
                await lane.backlog_written()
            return None

        async def answer(_: Any, context: _Context) -> None:
            lane = Lane(self._host, outcome_type, 1, context.write)
            self._lanes.add(lane)
            reader = asyncio.create_task(read(context, lane))
            reader.add_done_callback(lambda _: lane.close())
            if self._host.is_draining:
                lane.close()
            try:
                await lane.send()
                # Only draining closes a lane whose reader still reads.
                failure = reader.result() if reader.done() else _shutting_down()
            finally:
                self._lanes.discard(lane)
                reader.cancel()
                lane.abandon()
            if failure is not None:
                await _abort(context, failure)

        return grpc.stream_stream_rpc_method_handler(self._counted(answer))

    def _counted(self, answer: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(request: Any, context: _Context) -> Any:
            self._active += 1
            self._idle.clear()
            try:
                return await answer(request, context)
            finally:
                self._active -= 1
                if not self._active:
                    self._idle.set()

        return counted


def _trace_of(context: _Context) -> Trace:
    told: dict[str, Any] = dict(context.invocation_metadata() or ())
    return str(told.get("traceparent", "")), str(told.get("tracestate", ""))


def _constant(message: Message) -> Any:
    data = message.SerializeToString()

    async def answer(_: bytes, context: _Context) -> bytes:
        return data

    return grpc.unary_unary_rpc_method_handler(answer)


def _shutting_down() -> RemoteFailure:
    return RemoteFailure("shutting down", reason="UNAVAILABLE", retryable=True)


def _undecodable(message: Message, error: Exception) -> RemoteFailure:
    return RemoteFailure(
        f"a message that is not a {message.DESCRIPTOR.full_name}: {error}",
        reason="INVALID_ARGUMENT",
    )


async def _abort(context: _Context, failure: RemoteFailure) -> NoReturn:
    message = failure_pb2.Failure()
    failures.failure_to_proto(failure, message)
    message.message = message.message[:_MAX_DETAILS]
    message.stack_trace = message.stack_trace[-_MAX_STACK:]
    default = grpc.StatusCode.UNAVAILABLE if failure.retryable else grpc.StatusCode.INTERNAL
    code = _CODES.get(failure.reason, default)
    trailers: list[tuple[str, str | bytes]] = [
        ("cbench-reason", message.reason),
        (FAILURE_METADATA, message.SerializeToString()),
    ]
    if failure.retry_delay is not None:
        trailers.append(("grpc-retry-pushback-ms", str(round(failure.retry_delay * 1e3))))
    await context.abort(code, message.message, tuple(trailers))
