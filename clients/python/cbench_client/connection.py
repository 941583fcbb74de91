"""A connection to a process that serves systems: one attempt per call, and nothing hidden."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from cbench_client import convert
from cbench_client._gen.cbench.v1 import system_pb2
from cbench_client.channel import Tls
from cbench_client.errors import RemoteFailure, Unencodable, Unreachable
from cbench_client.process_stream import (
    MAX_BATCH_BYTES,
    ProcessStream,
    StreamRefused,
    UndecodableOutcome,
)
from cbench_client.unary import UnaryConnection

SERVICE = "cbench.v1.System"


@dataclass(frozen=True)
class SystemDescription:
    """What a process says about one system it serves."""

    name: str
    version: str
    description: str
    max_concurrency: int | None
    streams: bool
    converses: bool
    sdk: str


class ProcessReply(NamedTuple):
    """What a system made of an example; `latency` is in seconds, from call to arrival."""

    processed: dict[str, Any]
    usage: dict[str, Any] | None
    latency: float


class ConversationReply(NamedTuple):
    """What a system said in a conversation, one reply per user turn."""

    replies: list[dict[str, Any]]
    usage: dict[str, Any] | None
    latency: float


class SystemConnection:
    """Calls the systems served at one target. Belongs to the loop it is made on.

    Small calls to a system that streams share one `ProcessStream`; all others
    are made on their own. Call `describe` first: until then nothing streams.
    """

    def __init__(
        self, target: str, *, tls: Tls | bool | None = None, token: str | None = None
    ) -> None:
        self.target = target
        self._loop = asyncio.get_running_loop()
        self._unary = UnaryConnection(target, SERVICE, tls=tls, token=token)
        self._open_stream = self._unary.channel.stream_stream(f"/{SERVICE}/ProcessStream")
        self._streaming: frozenset[str] = frozenset()
        self._stream: ProcessStream | None = None

    async def describe(self, timeout: float = 5.0) -> list[SystemDescription]:
        """Ask what is served. Raises `Unreachable` with the likely cause."""
        data = await self._unary.describe(timeout)
        systems = _descriptions(data, self.target)
        streaming = {system.name for system in systems if system.streams}
        if streaming and len(systems) == 1:
            streaming.add("")
        self._streaming = frozenset(streaming)
        return systems

    async def process(
        self,
        system: str,
        example: Mapping[str, Any],
        *,
        call_id: str,
        timeout: float,
        options: Mapping[str, Any] | None = None,
        alone: bool = False,
    ) -> ProcessReply:
        """Have one example transformed; `alone` keeps it off the stream.

        Raises `Unencodable` for an example that cannot be sent, else
        `RemoteFailure`. After STREAM_GARBLED the same call should be made again
        `alone`: something else on the stream may have been at fault.
        """
        batch, data = self._encoded(system, example, call_id, timeout, options)
        if not alone and system in self._streaming and len(data) < MAX_BATCH_BYTES:
            try:
                return await self._over_stream(call_id, data, timeout, example)
            except StreamRefused:
                self._streaming = frozenset()
        data = batch.calls[0].request.SerializeToString()
        # A large example should not be held twice while its answer is awaited.
        del batch
        return await self._on_its_own(data, timeout, example)

    def start(
        self,
        system: str,
        example: Mapping[str, Any],
        *,
        call_id: str,
        timeout: float,
        done: Callable[[ProcessReply | RemoteFailure | None], None],
        options: Mapping[str, Any] | None = None,
    ) -> bool:
        """Have one example transformed without a task to wait for it.

        False if the example cannot go over the stream: use `process`. Otherwise
        `done` is called once, from the loop, with the reply or the failure, or
        with None if the server takes no stream and the call was not made.
        """
        if system not in self._streaming:
            return False
        try:
            _, data = self._encoded(system, example, call_id, timeout, options)
        except Unencodable:
            return False
        if len(data) >= MAX_BATCH_BYTES:
            return False
        started = self._loop.time()

        def arrived(outcome: system_pb2.ProcessOutcome | Exception, when: float) -> None:
            try:
                reply = self._outcome(outcome, example, when - started)
            except RemoteFailure as failure:
                done(failure)
            except StreamRefused:
                self._streaming = frozenset()
                done(None)
            else:
                done(reply)

        try:
            self._open().submit(call_id, data, timeout, arrived)
        except RemoteFailure:
            return False
        return True

    def give_up(self, call_id: str) -> None:
        """Forget a call that was started: `done` will not be called, and the server is told."""
        if self._stream is not None:
            self._stream.give_up(call_id)

    def _encoded(
        self,
        system: str,
        example: Mapping[str, Any],
        call_id: str,
        timeout: float,
        options: Mapping[str, Any] | None,
    ) -> tuple[system_pb2.ProcessStreamRequest, bytes]:
        batch = system_pb2.ProcessStreamRequest()
        call = batch.calls.add()
        request = call.request
        request.system = system
        request.call_id = call_id
        convert.example_to_proto(example, request.example)
        if options:
            convert.fields_to_proto(options, request.options, "options.")
        seconds = int(timeout)
        call.timeout.seconds = seconds
        call.timeout.nanos = int((timeout - seconds) * 1e9)
        return batch, batch.SerializeToString()

    async def converse(
        self,
        system: str,
        example: Mapping[str, Any],
        turns: Sequence[Mapping[str, Any]],
        *,
        call_id: str,
        timeout: float,
        options: Mapping[str, Any] | None = None,
    ) -> ConversationReply:
        """Have the user's turns of one conversation answered. Raises as `process` does."""
        request = system_pb2.ProcessConversationRequest(system=system, call_id=call_id)
        convert.example_to_proto(example, request.example)
        convert.turns_to_proto(turns, request.turns)
        convert.fields_to_proto(options or {}, request.options, "options.")
        started = self._loop.time()
        data = await self._unary.call("ProcessConversation", request.SerializeToString(), timeout)
        latency = self._loop.time() - started
        try:
            response = system_pb2.ProcessConversationResponse.FromString(data)
            replies = convert.turns_from_proto(response.replies)
        except (DecodeError, Unencodable) as error:
            raise self._undecodable(error) from None
        return ConversationReply(replies, _usage(response), latency)

    @property
    def is_connected(self) -> bool:
        """Whether the connection stands; if not, asks for it to be made."""
        return self._unary.is_connected

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the process is there and willing; False if it is not in time."""
        return await self._unary.wait_connected(timeout)

    async def close(self) -> None:
        """Close the connection; calls in flight fail."""
        if self._stream is not None:
            await self._stream.close()
        await self._unary.close()

    async def _over_stream(
        self, call_id: str, data: bytes, timeout: float, example: Mapping[str, Any]
    ) -> ProcessReply:
        arrival: asyncio.Future[tuple[system_pb2.ProcessOutcome | Exception, float]]
        arrival = self._loop.create_future()

        def arrived(outcome: system_pb2.ProcessOutcome | Exception, when: float) -> None:
            if not arrival.done():
                arrival.set_result((outcome, when))

        stream = self._open()
        started = self._loop.time()
        stream.submit(call_id, data, timeout, arrived)
        try:
            outcome, when = await arrival
        except asyncio.CancelledError:
            stream.give_up(call_id)
            raise
        return self._outcome(outcome, example, when - started)

    def _open(self) -> ProcessStream:
        if self._stream is None or not self._stream.is_open:
            self._stream = ProcessStream(self._open_stream, self.target)
        return self._stream

    def _outcome(
        self,
        outcome: system_pb2.ProcessOutcome | Exception,
        example: Mapping[str, Any],
        latency: float,
    ) -> ProcessReply:
        if isinstance(outcome, UndecodableOutcome):
            raise self._undecodable(outcome)
        if isinstance(outcome, Exception):
            raise outcome
        kind = outcome.WhichOneof("result")
        if kind == "response":
            return self._reply(outcome.response, example, latency)
        if kind == "failure":
            raise convert.failure_from_proto(outcome.failure)
        raise self._undecodable(ValueError("an outcome with neither response nor failure"))

    async def _on_its_own(
        self, request: bytes, timeout: float, example: Mapping[str, Any]
    ) -> ProcessReply:
        started = self._loop.time()
        data = await self._unary.call("Process", request, timeout)
        latency = self._loop.time() - started
        try:
            response = system_pb2.ProcessResponse.FromString(data)
        except DecodeError as error:
            raise self._undecodable(error) from None
        return self._reply(response, example, latency)

    def _reply(
        self, response: system_pb2.ProcessResponse, example: Mapping[str, Any], latency: float
    ) -> ProcessReply:
        try:
            processed = convert.processed_from_proto(response, example)
        except Unencodable as error:
            raise self._undecodable(error) from None
        return ProcessReply(processed, _usage(response), latency)

    def _undecodable(self, error: Exception) -> RemoteFailure:
        why = f": {error}" if isinstance(error, Unencodable | ValueError) else "."
        return RemoteFailure(
            f"{self.target} sent an answer that cannot be decoded{why}",
            reason="UNDECODABLE_RESPONSE",
        )


def _descriptions(data: bytes, target: str) -> list[SystemDescription]:
    try:
        response = system_pb2.SystemDescribeResponse.FromString(data)
    except DecodeError:
        raise Unreachable(
            f"{target} answered Describe with bytes that cannot be decoded. "
            f"Does it serve another version of {SERVICE}?"
        ) from None
    if not response.systems:
        raise Unreachable(f"{target} answers, but serves no system. Register one there.")
    return [
        SystemDescription(
            name=info.name,
            version=info.version,
            description=info.description,
            max_concurrency=info.max_concurrency if info.HasField("max_concurrency") else None,
            streams=system_pb2.CAPABILITY_STREAM in info.capabilities,
            converses=system_pb2.CAPABILITY_CONVERSATION in info.capabilities,
            sdk=response.sdk,
        )
        for info in response.systems
    ]


def _usage(response: Any) -> dict[str, Any] | None:
    return convert.usage_from_proto(response.usage) if response.HasField("usage") else None
