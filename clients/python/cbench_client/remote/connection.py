"""A connection to a process that serves systems: one attempt per call, and nothing hidden."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from cbench_client._gen.cbench.v1 import system_pb2
from cbench_client.errors import ClientError, RemoteFailure, Unencodable
from cbench_client.messages import convert, failures
from cbench_client.remote.call_stream import MAX_BATCH_BYTES
from cbench_client.remote.channel import Tls
from cbench_client.remote.description import SERVICE, SystemDescription, read_descriptions
from cbench_client.remote.process_stream import ProcessStream, StreamRefused, UndecodableOutcome
from cbench_client.remote.unary import UnaryConnection

# Text of which a call may be too large for a stream, a character having up to four bytes.
_LOOK_CLOSER = MAX_BATCH_BYTES // 4
_PARCEL_CHARACTERS = 256 * 1024


class ProcessCall(NamedTuple):
    """One example to be transformed, of which some fields are withheld."""

    call_id: str
    example: Mapping[str, Any]
    withheld: frozenset[str] = frozenset()
    token: Any = None
    """Whatever the caller knows it by."""


class ProcessReply(NamedTuple):
    """What a system made of an example; `latency` is in seconds, from call to arrival."""

    processed: dict[str, Any]
    usage: dict[str, Any] | None
    latency: float
    carried: Sequence[str] = ()
    """Texts of `processed` that are the example's own."""
    token: Any = None


Answered = Callable[[list[ProcessReply]], None]
Failed = Callable[[Any, ClientError], None]
"""Told a call's token and why there is no reply: `RemoteFailure`, or `Unencodable`."""


class ConversationReply(NamedTuple):
    """What a system said in a conversation, one reply per user turn."""

    replies: list[dict[str, Any]]
    usage: dict[str, Any] | None
    latency: float


class _Asked:
    """What calls that were started together have in common: whom, how, and who is told."""

    __slots__ = ("_key", "answered", "failed", "options", "system", "timeout")

    def __init__(
        self,
        system: str,
        timeout: float,
        options: Mapping[str, Any] | None,
        answered: Answered,
        failed: Failed,
    ) -> None:
        self.system = system
        self.timeout = timeout
        self.options = options
        self.answered = answered
        self.failed = failed
        self._key = (answered, failed)

    # Those who are told by the same functions are told together.
    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self._key == other._key


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
        self._last_head: tuple[Any, system_pb2.ProcessCall, Any] | None = None
        # Calls of their own, by id, and replies to them that nobody was told of yet.
        self._alone: dict[str, asyncio.Task[None]] = {}
        self._gathered: dict[_Asked, list[ProcessReply]] = {}

    async def describe(self, timeout: float = 5.0) -> list[SystemDescription]:
        """Ask what is served. Raises `Unreachable` with the likely cause."""
        data = await self._unary.describe(timeout)
        systems = read_descriptions(data, self.target)
        self.adopt(systems)
        return systems

    def adopt(self, systems: Sequence[SystemDescription]) -> None:
        """Take what another connection to the same target was told."""
        streaming = {system.name for system in systems if system.streams}
        if streaming and len(systems) == 1:
            streaming.add("")
        self._streaming = frozenset(streaming)

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
        ended: asyncio.Future[ProcessReply] = self._loop.create_future()

        def answered(replies: list[ProcessReply]) -> None:
            if not ended.done():
                ended.set_result(replies[0])

        def failed(_: Any, error: ClientError) -> None:
            if not ended.done():
                ended.set_exception(error)

        call = ProcessCall(call_id, example)
        self.start_many(
            system,
            [call],
            timeout=timeout,
            answered=answered,
            failed=failed,
            options=options,
            alone=alone,
        )
        try:
            return await ended
        except asyncio.CancelledError:
            self.give_up(call_id)
            raise

    def start_many(
        self,
        system: str,
        calls: Sequence[ProcessCall],
        *,
        timeout: float,
        answered: Answered,
        failed: Failed,
        options: Mapping[str, Any] | None = None,
        alone: bool = False,
    ) -> None:
        """Have examples transformed that travel together, without a task for each.

        Every call ends with exactly one of the two functions, which are called
        from the loop and never before this returns.
        """
        asked = _Asked(system, timeout, options, answered, failed)
        try:
            head = self._head(asked)
        except Unencodable as error:
            for call in calls:
                self._loop.call_soon(failed, call.token, error)
            return
        is_streamed = not alone and system in self._streaming
        message = system_pb2.ProcessStreamRequest()
        sent: list[tuple[str, tuple[ProcessCall, _Asked, float]]] = []
        size = 0
        now = self._loop.time()
        for call in calls:
            if self._is_in_flight(call.call_id):
                self._loop.call_soon(failed, call.token, self._in_flight(call.call_id))
                continue
            made = message.calls.add()
            made.CopyFrom(head)
            made.request.call_id = call.call_id
            try:
                text = convert.visible_to_proto(call.example, call.withheld, made.request.example)
            except Unencodable as error:
                del message.calls[-1]
                self._loop.call_soon(failed, call.token, error)
                continue
            if not is_streamed or (text >= _LOOK_CLOSER and made.ByteSize() >= MAX_BATCH_BYTES):
                self._start_alone(call, made.request.SerializeToString(), asked)
                del message.calls[-1]
                continue
            sent.append((call.call_id, (call, asked, now)))
            size += text
            if size >= _PARCEL_CHARACTERS:
                self._open().submit(sent, message.SerializeToString(), timeout, self._sort)
                message, sent, size = system_pb2.ProcessStreamRequest(), [], 0
        if sent:
            self._open().submit(sent, message.SerializeToString(), timeout, self._sort)

    def _head(self, asked: "_Asked") -> system_pb2.ProcessCall:
        """What all calls of a system have in common."""
        key = (asked.system, asked.timeout, id(asked.options))
        if self._last_head is None or self._last_head[0] != key:
            head = system_pb2.ProcessCall()
            head.request.system = asked.system
            seconds = int(asked.timeout)
            head.timeout.seconds = seconds
            head.timeout.nanos = int((asked.timeout - seconds) * 1e9)
            if asked.options:
                convert.fields_to_proto(asked.options, head.request.options, "options.")
            # The options are kept, so that no others get their id.
            self._last_head = (key, head, asked.options)
        return self._last_head[1]

    def _is_in_flight(self, call_id: str) -> bool:
        is_streamed = self._stream is not None and self._stream.holds(call_id)
        return is_streamed or call_id in self._alone

    def _in_flight(self, call_id: str) -> RemoteFailure:
        return RemoteFailure(
            f'the call "{call_id}" to {self.target} is already in flight.',
            origin="daemon",
            reason="ALREADY_EXISTS",
        )

    def give_up(self, call_id: str) -> None:
        """Forget a call that was started: nobody is told of its end, and the server is told."""
        if task := self._alone.pop(call_id, None):
            task.cancel()
        elif self._stream is not None:
            self._stream.give_up(call_id)

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
        for call_id in list(self._alone):
            self.give_up(call_id)
        await self._unary.close()

    def _open(self) -> ProcessStream:
        if self._stream is None or not self._stream.is_open:
            self._stream = ProcessStream(self._open_stream, self.target)
        return self._stream

    def _sort(self, ended: list[tuple[Any, Any]], when: float) -> None:
        """Tell those who asked of calls that ended together."""
        replies: dict[_Asked, list[ProcessReply]] = {}
        for (call, asked, started), outcome in ended:
            try:
                if outcome.__class__ is system_pb2.ProcessOutcome and outcome.HasField("response"):
                    reply = self._reply(outcome.response, call, when - started)
                    replies.setdefault(asked, []).append(reply)
                else:
                    asked.failed(call.token, self._failure(outcome))
            except StreamRefused:
                # The call has not been made; it is, on its own, and so are all that follow.
                self._streaming = frozenset()
                self.start_many(
                    asked.system,
                    [call],
                    timeout=asked.timeout,
                    answered=asked.answered,
                    failed=asked.failed,
                    options=asked.options,
                )
            except RemoteFailure as failure:
                asked.failed(call.token, failure)
        for asked, together in replies.items():
            asked.answered(together)

    def _failure(self, outcome: Any) -> RemoteFailure:
        if isinstance(outcome, UndecodableOutcome):
            return self._undecodable(outcome)
        if isinstance(outcome, StreamRefused):
            raise outcome
        if isinstance(outcome, RemoteFailure):
            return outcome
        if outcome.WhichOneof("result") == "failure":
            return failures.failure_from_proto(outcome.failure)
        return self._undecodable(ValueError("an outcome with neither response nor failure"))

    # Calls of their own: large ones, and all to a server that takes no stream.

    def _start_alone(self, call: ProcessCall, request: bytes, asked: "_Asked") -> None:
        self._alone[call.call_id] = self._loop.create_task(self._await(call, request, asked))

    async def _await(self, call: ProcessCall, request: bytes, asked: "_Asked") -> None:
        started = self._loop.time()
        try:
            data = await self._unary.call("Process", request, asked.timeout)
            response = system_pb2.ProcessResponse.FromString(data)
            reply = self._reply(response, call, self._loop.time() - started)
        except RemoteFailure as failure:
            self._alone.pop(call.call_id, None)
            asked.failed(call.token, failure)
        except DecodeError as error:
            self._alone.pop(call.call_id, None)
            asked.failed(call.token, self._undecodable(error))
        else:
            self._alone.pop(call.call_id, None)
            if not self._gathered:
                self._loop.call_soon(self._tell)
            self._gathered.setdefault(asked, []).append(reply)

    def _tell(self) -> None:
        """Tell of the replies that have gathered since the loop last came round."""
        gathered, self._gathered = self._gathered, {}
        for asked, replies in gathered.items():
            asked.answered(replies)

    def _reply(
        self, response: system_pb2.ProcessResponse, call: ProcessCall, latency: float
    ) -> ProcessReply:
        try:
            processed, carried = convert.answer_from_proto(response, call.example, call.withheld)
        except Unencodable as error:
            raise self._undecodable(error) from None
        return ProcessReply(processed, _usage(response), latency, carried, call.token)

    def _undecodable(self, error: Exception) -> RemoteFailure:
        why = f": {error}" if isinstance(error, Unencodable | ValueError) else "."
        return RemoteFailure(
            f"{self.target} sent an answer that cannot be decoded{why}",
            reason="UNDECODABLE_RESPONSE",
        )


def _usage(response: Any) -> dict[str, Any] | None:
    return convert.usage_from_proto(response.usage) if response.HasField("usage") else None
