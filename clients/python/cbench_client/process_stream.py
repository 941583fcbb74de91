"""One `ProcessStream`: many calls in flight, each message carrying whatever is ready."""

import asyncio
import copy
from collections.abc import Callable
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from cbench_client._gen.cbench.v1 import system_pb2
from cbench_client.diagnosis import short
from cbench_client.errors import RemoteFailure
from cbench_client.status import is_too_large
from cbench_client.wire import pieces

MAX_BATCH_BYTES = 1024 * 1024

Arrived = Callable[[system_pb2.ProcessOutcome | Exception, float], None]
"""Told an outcome, or why there is none, and the loop's time of its arrival."""

_NEVER = float("inf")
_EOF: Any = cast(Any, grpc.aio).EOF


class StreamRefused(Exception):
    """The server takes no stream; the call has not been made."""


class UndecodableOutcome(Exception):
    """The server answered this call with bytes that are not an outcome."""


class ProcessStream:
    """Matches outcomes with calls over one stream, until it breaks.

    Belongs to the loop it is made on. A broken stream stays broken: every call
    on it has failed and `is_open` is False. What waits to be sent is bounded
    by the callers, who each wait for one outcome.
    """

    def __init__(self, open_call: Callable[[], Any], target: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._target = target
        # Deadlines of the calls in flight, in the order they were made.
        self._waiting: dict[str, tuple[Arrived, float]] = {}
        self._outbox: dict[str, bytes] = {}
        self._outbox_bytes = 0
        self._cancelled: list[str] = []
        self._wake: asyncio.Future[None] | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = _NEVER
        self.is_open = True
        self._call = open_call()
        self._reader = self._loop.create_task(self._read())
        self._writer = self._loop.create_task(self._write())

    def submit(self, call_id: str, data: bytes, timeout: float, arrived: Arrived) -> None:
        """Send a call; `data` is a `ProcessStreamRequest` that holds it alone.

        `arrived` gets the outcome, or `RemoteFailure`, `StreamRefused` or
        `UndecodableOutcome`. It must not raise.
        """
        if call_id in self._waiting:
            raise RemoteFailure(
                f'the call "{call_id}" to {self._target} is already in flight.',
                origin="daemon",
                reason="ALREADY_EXISTS",
            )
        deadline = self._loop.time() + timeout
        self._waiting[call_id] = (arrived, deadline)
        self._outbox[call_id] = data
        self._outbox_bytes += len(data)
        self._wake_writer()
        # One timer for all: with equal timeouts a new call is never the next to expire.
        if deadline < self._sweep_at:
            self._sweep_again_at(deadline)

    def give_up(self, call_id: str) -> None:
        """Forget a call, and tell the server unless it has not heard of it."""
        if self._waiting.pop(call_id, None) is None:
            return
        data = self._outbox.pop(call_id, None)
        if data is None:
            self._cancelled.append(call_id)
            self._wake_writer()
        else:
            self._outbox_bytes -= len(data)

    async def close(self) -> None:
        """End the stream; calls still in flight fail."""
        self._finish(self._lost("the connection was closed"))
        self._call.cancel()
        self._reader.cancel()
        self._writer.cancel()
        await asyncio.gather(self._reader, self._writer, return_exceptions=True)

    def _wake_writer(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _write(self) -> None:
        try:
            while True:
                if not self._outbox and not self._cancelled:
                    self._wake = self._loop.create_future()
                    await self._wake
                if data := self._take():
                    await self._call.write(data)
        except (grpc.RpcError, asyncio.InvalidStateError):
            # The stream is over, and the reader learns why.
            return
        except Exception as error:
            self._finish(self._lost(f"a message could not be sent ({type(error).__name__})"))
            self._call.cancel()

    def _take(self) -> bytes:
        # Encoded messages that follow one another are one message with all
        # their calls, so nothing is encoded twice.
        if self._outbox_bytes <= MAX_BATCH_BYTES:
            parts = list(self._outbox.values())
            self._outbox.clear()
            self._outbox_bytes = 0
        else:
            parts, size = [], 0
            for call_id, data in list(self._outbox.items()):
                if parts and size + len(data) > MAX_BATCH_BYTES:
                    break
                del self._outbox[call_id]
                parts.append(data)
                size += len(data)
            self._outbox_bytes -= size
        if self._cancelled:
            cancel = system_pb2.ProcessStreamRequest(cancel_call_ids=self._cancelled)
            parts.append(cancel.SerializeToString())
            self._cancelled.clear()
        return b"".join(parts)

    async def _read(self) -> None:
        try:
            while (data := await self._call.read()) is not _EOF:
                self._deliver(data)
            self._finish(self._lost("it ended the stream"))
        except grpc.RpcError as error:
            self._finish(self._failure(error))
        finally:
            self._finish(self._lost("the connection was closed"))
            self._call.cancel()
            self._writer.cancel()

    def _deliver(self, data: bytes) -> None:
        now = self._loop.time()
        forget = self._waiting.pop
        try:
            outcomes = system_pb2.ProcessStreamResponse.FromString(data).outcomes
        except DecodeError:
            self._salvage(data, now)
            return
        for outcome in outcomes:
            waiting = forget(outcome.call_id, None)
            if waiting is not None:
                waiting[0](outcome, now)

    def _salvage(self, data: bytes, now: float) -> None:
        """Decode the outcomes of a message one by one, so that only bad ones fail."""
        try:
            for piece in pieces(data, field=1):
                try:
                    outcome = system_pb2.ProcessOutcome.FromString(piece)
                    call_id = outcome.call_id
                except DecodeError:
                    outcome, call_id = None, next(pieces(piece, field=1)).decode()
                waiting = self._waiting.pop(call_id, None)
                if waiting is not None:
                    waiting[0](UndecodableOutcome() if outcome is None else outcome, now)
        except (ValueError, StopIteration):
            self._finish(self._garbled("it sent a message that cannot be decoded"))
            self._call.cancel()

    def _failure(self, error: grpc.RpcError) -> Exception:
        code = error.code()
        if is_too_large(error):
            return self._garbled(f"a message was too large: {short(error.details())}")
        if code in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED):
            return StreamRefused()
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            return self._lost(short(error.details()))
        return self._garbled(short(error.details()))

    def _lost(self, why: str) -> RemoteFailure:
        return RemoteFailure(
            f"the stream to {self._target} broke off: {why}.",
            origin="transport",
            reason="UNAVAILABLE",
            retryable=True,
        )

    def _garbled(self, why: str) -> RemoteFailure:
        return RemoteFailure(
            f"the stream to {self._target} broke off: {why}. Ask again, each call on its own.",
            origin="transport",
            reason="STREAM_GARBLED",
            retryable=True,
        )

    def _finish(self, error: Exception) -> None:
        self.is_open = False
        if self._sweep is not None:
            self._sweep.cancel()
        waiting, self._waiting = self._waiting, {}
        now = self._loop.time()
        for arrived, _ in waiting.values():
            # Each caller gets its own: callers note their attempts on it.
            arrived(copy.copy(error), now)

    def _sweep_again_at(self, when: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep_at = when
        self._sweep = None if when == _NEVER else self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        now = self._loop.time()
        late = [call_id for call_id, (_, deadline) in self._waiting.items() if deadline <= now]
        for call_id in late:
            if call_id not in self._waiting:
                continue
            arrived, _ = self._waiting[call_id]
            self.give_up(call_id)
            arrived(
                RemoteFailure(
                    f"{self._target} did not answer in time.", reason="DEADLINE_EXCEEDED"
                ),
                now,
            )
        self._sweep_again_at(min((due for _, due in self._waiting.values()), default=_NEVER))
