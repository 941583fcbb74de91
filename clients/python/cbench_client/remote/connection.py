"""A connection to a process that serves systems: one attempt per call, and nothing hidden."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError

from cbench_client._gen.cbench.v1 import system_pb2
from cbench_client.errors import ClientError, RemoteFailure, Unencodable
from cbench_client.messages import convert, failures
from cbench_client.messages.parts import parse_counted
from cbench_client.remote.call_stream import MAX_BATCH_BYTES, Ended
from cbench_client.remote.calls import (
    UNTRACED,
    Answered,
    Asked,
    ConversationReply,
    Failed,
    ProcessCall,
    ProcessReply,
    Reply,
    WholeCall,
    already_in_flight,
)
from cbench_client.remote.channel import Tls
from cbench_client.remote.description import SERVICE, SystemDescription, read_descriptions
from cbench_client.remote.process_stream import (
    LARGE_BYTES,
    LargeOutcome,
    ProcessStream,
    StreamRefused,
    UndecodableOutcome,
    undecodable,
)
from cbench_client.remote.pulse import Pulse
from cbench_client.remote.unary import UnaryConnection

# Text of which a call may be too large for a stream, a character having up to four bytes.
_LOOK_CLOSER = MAX_BATCH_BYTES // 4
_PARCEL_CHARACTERS = 256 * 1024


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
        # Calls made on their own, by id, and those of them that are over, with the time.
        self._alone: dict[str, Any] = {}
        self._over: list[tuple[tuple[ProcessCall, Asked], Any, float]] = []
        self._pulse = Pulse(target, tls, self._is_busy, self._break_off)
        self._late: set[asyncio.Task[None]] = set()
        self._decoding = asyncio.Lock()

    async def describe(self, timeout: float = 5.0) -> list[SystemDescription]:
        """Ask what is served. Raises `Unreachable` with the likely cause, or `Refused`."""
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
        instruction: str = "",
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

        self.start_many(
            system,
            [WholeCall(call_id, example, instruction=instruction)],
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
        reply: Reply = ProcessReply,
    ) -> None:
        """Have examples transformed that travel together, without a task for each.

        Every call ends with exactly one of the two functions, which are called
        from the loop and never before this returns. Replies that arrive
        together are told together.
        """
        self._pulse.watch()
        asked = Asked(system, timeout, options, answered, failed, reply)
        try:
            head = self._head(asked)
        except Unencodable as error:
            for call in calls:
                self._loop.call_soon(failed, call, error)
            return
        is_streamed = not alone and system in self._streaming
        message = system_pb2.ProcessStreamRequest()
        sent: dict[str, tuple[ProcessCall, Asked]] = {}
        size = 0
        for call in calls:
            call_id, work = call.call_id, call.work
            if call_id in sent or self._is_in_flight(call_id):
                self._loop.call_soon(failed, call, already_in_flight(call_id, self.target))
                continue
            made = message.calls.add()
            made.CopyFrom(head)
            request = made.request
            request.call_id = call_id
            if work.instruction:
                request.instruction = work.instruction
            if trace := call.trace:
                made.traceparent = trace["traceparent"]
                made.tracestate = trace.get("tracestate", "")
            try:
                text = convert.visible_to_proto(work.example, work.withheld, request.example)
            except Unencodable as error:
                del message.calls[-1]
                self._loop.call_soon(failed, call, error)
                continue
            if not is_streamed or (text >= _LOOK_CLOSER and made.ByteSize() >= MAX_BATCH_BYTES):
                self._start_alone((call, asked), request.SerializeToString())
                del message.calls[-1]
                continue
            sent[call_id] = (call, asked)
            size += text
            if size >= _PARCEL_CHARACTERS:
                self._open().submit(sent, message.SerializeToString(), timeout, self._sort)
                message, sent, size = system_pb2.ProcessStreamRequest(), {}, 0
        if sent:
            self._open().submit(sent, message.SerializeToString(), timeout, self._sort)

    def _head(self, asked: Asked) -> system_pb2.ProcessCall:
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
        return call_id in self._alone or (self._stream is not None and self._stream.holds(call_id))

    def give_up(self, call_id: str) -> None:
        """Forget a call that was started: its end is not told, and the server learns of it."""
        if made := self._alone.pop(call_id, None):
            made.cancel()
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
        instruction: str = "",
        trace: Mapping[str, str] = UNTRACED,
    ) -> ConversationReply:
        """Have the user's turns of one conversation answered. Raises as `process` does."""
        request = system_pb2.ProcessConversationRequest(
            system=system, call_id=call_id, instruction=instruction
        )
        convert.example_to_proto(example, request.example)
        convert.turns_to_proto(turns, request.turns)
        convert.fields_to_proto(options or {}, request.options, "options.")
        encoded = request.SerializeToString()
        started = self._loop.time()
        data = await self._unary.call("ProcessConversation", encoded, timeout, trace)
        latency = self._loop.time() - started
        try:
            response = system_pb2.ProcessConversationResponse.FromString(data)
            replies = convert.turns_from_proto(response.replies)
        except (DecodeError, Unencodable) as error:
            raise undecodable(self.target, error) from None
        usage = convert.usage_from_proto(response.usage) if response.HasField("usage") else None
        return ConversationReply(replies, usage, latency, convert.handler_seconds(response))

    @property
    def is_connected(self) -> bool:
        """Whether the connection stands; if not, asks for it to be made."""
        return self._unary.is_connected

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the process is there and willing; False if it is not in time."""
        return await self._unary.wait_connected(timeout)

    async def close(self) -> None:
        """Close the connection; calls in flight fail."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.close()
        for call_id in [*self._alone]:
            self.give_up(call_id)
        for late in [*self._late]:
            late.cancel()
        await self._pulse.stop()
        await self._unary.close()

    def _open(self) -> ProcessStream:
        if self._stream is None or not self._stream.is_open:
            self._stream = ProcessStream(self._open_stream, self.target)
        return self._stream

    def _sort(self, ended: list[Ended]) -> None:
        """Tell those who asked of calls that ended together."""
        replies: dict[Answered, list[Any]] = {}
        together: list[Any] = []
        last: Asked | None = None
        for (call, asked), outcome, seconds in ended:
            if outcome.__class__ is LargeOutcome:
                self._later(self._decode_apart(call, asked, outcome.outcome, seconds))
                continue
            if asked is not last:
                together = replies.setdefault(asked.answered, [])
                last = asked
            try:
                together.append(self._reply(call, asked, outcome, seconds))
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
                    reply=asked.reply,
                )
            except RemoteFailure as failure:
                if failure.reason == "DEADLINE_EXCEEDED":
                    self._later(self._tell_late(call, asked, failure))
                else:
                    asked.failed(call, failure)
        for answered, together in replies.items():
            if together:
                self._pulse.heard = self._loop.time()
                answered(together)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _decode_apart(self, call: Any, asked: Asked, outcome: Any, seconds: float) -> None:
        """Decode a large answer in a thread, one at a time, and tell of it; its time is taken."""
        try:
            async with self._decoding:
                reply = await asyncio.to_thread(self._reply, call, asked, outcome, seconds)
        except RemoteFailure as failure:
            asked.failed(call, failure)
        else:
            self._pulse.heard = self._loop.time()
            asked.answered([reply])

    async def _tell_late(self, call: Any, asked: Asked, failure: RemoteFailure) -> None:
        """Tell of a call whose time was up, unless nobody was there to answer it."""
        asked.failed(call, await self._unary.late_or_lost(failure))

    def _is_busy(self) -> bool:
        return bool(self._alone) or (self._stream is not None and self._stream.is_busy)

    def _break_off(self) -> None:
        """Have the calls that are out fail as lost."""
        if self._stream is not None:
            self._stream.break_off(self._unary.lost)
        for made in list(self._alone.values()):
            made.cancel()

    def _reply(self, call: Any, asked: Asked, outcome: Any, seconds: float) -> Any:
        """Make the reply to a call, or raise why there is none."""
        if outcome.__class__ is bytes:
            try:
                outcome = parse_counted(outcome, system_pb2.ProcessResponse)
            except DecodeError as error:
                raise undecodable(self.target, error) from None
        if outcome.__class__ is system_pb2.ProcessOutcome and outcome.HasField("response"):
            response = outcome.response
        elif outcome.__class__ is system_pb2.ProcessResponse:
            response = outcome
        else:
            raise self._failure(outcome)
        work = call.work
        try:
            processed, carried = convert.answer_from_proto(response, work.example, work.withheld)
        except Unencodable as error:
            raise undecodable(self.target, error) from None
        usage = convert.usage_from_proto(response.usage) if response.HasField("usage") else None
        handler = convert.handler_seconds(response)
        return asked.reply(call, processed, seconds, usage, carried, handler)

    def _failure(self, outcome: Any) -> RemoteFailure | StreamRefused:
        if isinstance(outcome, UndecodableOutcome):
            return undecodable(self.target, outcome)
        if isinstance(outcome, StreamRefused | RemoteFailure):
            return outcome
        if outcome.WhichOneof("result") == "failure":
            return failures.failure_from_proto(outcome.failure)
        return undecodable(self.target, ValueError("an outcome with neither response nor failure"))

    # Calls made on their own: large ones, and all to a server that takes no stream.

    def _start_alone(self, token: tuple[ProcessCall, Asked], request: bytes) -> None:
        call, asked = token
        ended = partial(self._alone_ended, token, self._loop.time())
        made = self._unary.start("Process", request, asked.timeout, call.trace)
        self._alone[call.call_id] = made
        made.add_done_callback(ended)

    def _alone_ended(self, token: tuple[ProcessCall, Asked], started: float, made: Any) -> None:
        """Gather what ends in one turn of the loop, so that it is told together."""
        if not self._over:
            self._loop.call_soon(self._tell)
        self._over.append((token, made, self._loop.time() - started))

    def _tell(self) -> None:
        over, self._over = self._over, []
        ended = []
        for (call, asked), made, seconds in over:
            # The end of a call that was given up is not told; its id may be in use again.
            if self._alone.get(call.call_id) is made:
                del self._alone[call.call_id]
                outcome = self._alone_outcome(made, seconds - asked.timeout)
                ended.append(((call, asked), outcome, seconds))
        self._sort(ended)

    def _alone_outcome(self, made: Any, late: float) -> Any:
        try:
            data = self._unary.result(made)
            is_large = len(data) > LARGE_BYTES
            return LargeOutcome(data) if is_large else system_pb2.ProcessResponse.FromString(data)
        except RemoteFailure as failure:
            return self._unary.heard(failure, late)
        except DecodeError as error:
            return undecodable(self.target, error)
