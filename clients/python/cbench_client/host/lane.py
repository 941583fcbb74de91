"""Calls that came over one stream, and their outcomes on the way back over it.

Outcomes are serialised one by one and joined as bytes, which is what protobuf
does with a repeated field anyway: their sizes are then known for free, and a
message takes all that is ready without ever waiting for more.

A stream that brings more calls than its system can queue is not read on, so
HTTP/2 holds back the sender. Since a cancellation may be stuck behind those
calls, reading resumes after a second even so, and calls that still find no
room are refused as retryable.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from cbench_client.errors import RemoteFailure
from cbench_client.host.calls import UNTRACED, CurrentCall, Done, Job, Trace
from cbench_client.host.limits import Offer
from cbench_client.messages import failures
from cbench_client.remote.channel import MAX_MESSAGE_BYTES

BATCH_BYTES = 1_000_000
# What may wait to be written before no more is read from the same peer.
BACKLOG_BYTES = 16 * BATCH_BYTES
PATIENCE_S = 1.0
_FRAME_BYTES = 64


class Calls(Protocol):
    """What takes the calls of a stream: a `Host`, or what answers like one."""

    def submit(
        self, kind: str, request: Any, reply: Message, call: CurrentCall, on_done: Done
    ) -> Job:
        """Start one call. Raises `RemoteFailure` for one that is refused."""
        ...

    def find(self, kind: str, request: Any) -> Offer:
        """Return whom a request is for."""
        ...


class Lane:
    """The calls of one stream.

    Args:
        outcome: The message for one outcome, with `call_id` and `failure`.
        field_number: Where the message written holds its repeated outcomes.
    """

    def __init__(
        self,
        host: Calls,
        outcome: Callable[..., Any],
        field_number: int,
        write: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._host = host
        self._outcome = outcome
        self._tag = bytes([field_number << 3 | 2])
        self._write = write
        self._held: dict[Job, Any] = {}
        self._by_id: dict[str, Job] = {}
        # Each with the bytes that frame it.
        self._ready: deque[tuple[bytes, bytes]] = deque()
        self._ready_bytes = 0
        self._is_closed = False
        self._news = asyncio.Event()
        self._written = asyncio.Event()

    @property
    def held(self) -> int:
        """How many calls have no outcome yet."""
        return len(self._held)

    def start(
        self,
        kind: str,
        request: Any,
        call_id: str,
        timeout: Duration | None,
        field: str,
        trace: Trace = UNTRACED,
        *,
        is_patient: bool = False,
    ) -> bool:
        """Start a call whose result belongs in the outcome's `field`.

        False means there is no room for it and `is_patient` asked to be told;
        every other refusal is the outcome.
        """
        outcome = self._outcome(call_id=call_id)
        seconds = None if timeout is None else timeout.seconds + timeout.nanos / 1e9
        call = CurrentCall(call_id, seconds, trace)
        try:
            job = self._host.submit(kind, request, getattr(outcome, field), call, self._done)
        except RemoteFailure as failure:
            if is_patient and failure.reason == "RESOURCE_EXHAUSTED":
                return False
            self.fail(call_id, failure)
            return True
        self._held[job] = outcome
        if call_id:
            self._by_id[call_id] = job
        return True

    async def room_for(self, kind: str, request: Any) -> bool:
        """Wait, but not for long, until there is room for a call."""
        offer = self._host.find(kind, request)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while offer.is_full:
                    await offer.room.wait()
        except TimeoutError:
            return False
        return True

    async def backlog_written(self) -> None:
        """Wait while the peer does not read what it asked for."""
        while self._ready_bytes > BACKLOG_BYTES:
            self._written.clear()
            await self._written.wait()

    def cancel(self, call_id: str) -> None:
        """Give up a call; it gets no outcome. An unknown one is ignored."""
        job = self._by_id.pop(call_id, None)
        if job is not None:
            self._held.pop(job, None)
            job.cancel()
            self._news.set()

    def fail(self, call_id: str, failure: RemoteFailure) -> None:
        """Queue an outcome for a call without a result."""
        outcome = self._outcome(call_id=call_id)
        failures.failure_to_proto(failure, outcome.failure)
        self._put(outcome.SerializeToString())

    def put_message(self, data: bytes, frame: bytes = b"") -> None:
        """Queue other parts of the message written, after the outcomes queued so far."""
        self._ready.append((frame, data))
        self._ready_bytes += len(data)
        self._news.set()

    def close(self) -> None:
        """Take no more calls: `send` returns when those held are answered."""
        self._is_closed = True
        self._news.set()

    def abandon(self) -> None:
        """Give up every call, because the peer is gone."""
        held, self._held, self._by_id = self._held, {}, {}
        for job in held:
            job.cancel()

    async def send(self) -> None:
        """Write outcomes as they become ready, until closed and done."""
        while True:
            if self._ready:
                await self._write(self._next_batch())
                self._written.set()
            elif self._is_closed and not self._held:
                return
            else:
                self._news.clear()
                await self._news.wait()

    def _next_batch(self) -> bytes:
        batch: list[bytes] = []
        size = 0
        while self._ready and (not batch or size + len(self._ready[0][1]) <= BATCH_BYTES):
            framed = self._ready.popleft()
            size += len(framed[1])
            batch += framed
        self._ready_bytes -= size
        return b"".join(batch)

    def _done(self, job: Job, failure: RemoteFailure | None) -> None:
        outcome = self._held.pop(job, None)
        if outcome is None:
            return
        call_id = job.call.call_id
        self._by_id.pop(call_id, None)
        if failure is not None:
            self.fail(call_id, failure)
            return
        job.reply.SetInParent()
        data = serialised(outcome)
        if isinstance(data, RemoteFailure):
            self.fail(call_id, data)
        else:
            self._put(data)

    def _put(self, data: bytes) -> None:
        self.put_message(data, self._tag + _varint(len(data)))


def serialised(message: Message) -> bytes | RemoteFailure:
    """Serialise a result, or say that no message can hold it."""
    data = message.SerializeToString()
    if len(data) <= MAX_MESSAGE_BYTES - _FRAME_BYTES:
        return data
    return RemoteFailure(
        f"the result has {len(data):,} bytes, and a message holds {MAX_MESSAGE_BYTES:,}",
        reason="RESULT_TOO_LARGE",
    )


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
