"""A `ProcessStream`: many calls in flight, each message carrying all that is ready."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from cbench_client._gen.cbench.v1 import system_pb2
from cbench_client.errors import RemoteFailure, Unencodable
from cbench_client.messages.fragments import pieces
from cbench_client.messages.parts import Crowded, check_parts
from cbench_client.remote.call_stream import CallStream
from cbench_client.remote.diagnosis import short
from cbench_client.remote.status import is_too_large

_EOF: Any = cast(Any, grpc.aio).EOF


async def _counted(data: bytes, message: Any) -> None:
    """Count the parts of a large message where that holds up nobody."""
    await asyncio.to_thread(check_parts, data, message.DESCRIPTOR)


class StreamRefused(Exception):
    """The server takes no stream; the call has not been made."""


LARGE_BYTES = 64 * 1024
"""Of a message; what is in a larger one is decoded where it holds up nothing else."""


class LargeOutcome:
    """An outcome that takes its time to decode."""

    __slots__ = ("outcome",)

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome


class UndecodableOutcome(Exception):
    """The server answered this call with bytes that are not an outcome."""


def undecodable(target: str, error: Exception) -> RemoteFailure:
    """Say that an answer cannot be decoded, and why where that is known."""
    is_told = isinstance(error, Unencodable | ValueError | Crowded | UndecodableOutcome)
    why = f": {error}" if is_told and str(error) else "."
    return RemoteFailure(
        f"{target} sent an answer that cannot be decoded{why}", reason="UNDECODABLE_RESPONSE"
    )


class ProcessStream(CallStream):
    """The calls over one stream, until it breaks.

    A broken stream stays broken: every call on it has failed and `is_open` is
    False. What waits to be sent is bounded by the callers. A call ends with a
    ProcessOutcome, or RemoteFailure, StreamRefused or UndecodableOutcome.
    """

    def __init__(self, open_call: Callable[[], Any], target: str) -> None:
        super().__init__(
            lambda ids: system_pb2.ProcessStreamRequest(cancel_call_ids=ids).SerializeToString(),
            lambda _: RemoteFailure(
                f"{target} did not answer in time.", reason="DEADLINE_EXCEEDED"
            ),
        )
        self._target = target
        self._call = open_call()
        self._reader = self._loop.create_task(self._read())
        self._writer = self._loop.create_task(self._write())

    async def close(self) -> None:
        """End the stream; calls still in flight fail."""
        self.finish(lambda: self._lost("the connection was closed"))
        self._call.cancel()
        self._reader.cancel()
        self._writer.cancel()
        await asyncio.gather(self._reader, self._writer, return_exceptions=True)
        # A call holds its socket as long as it is, and the frames of their errors lead to it.
        del self._call, self._reader, self._writer

    def break_off(self, make_error: Callable[[], Exception]) -> None:
        """End the stream without a word from the other side."""
        self.finish(make_error)
        self._call.cancel()

    async def _write(self) -> None:
        try:
            while self.is_open:
                await self.ready()
                if data := self.take():
                    await self._call.write(data)
        except (grpc.RpcError, asyncio.InvalidStateError):
            # The stream is over, and the reader learns why.
            return
        except Exception as error:
            why = f"a message could not be sent ({type(error).__name__})"
            self.finish(lambda: self._lost(why))
            self._call.cancel()

    async def _read(self) -> None:
        try:
            while await self._deliver():
                pass
            self.finish(lambda: self._lost("it ended the stream"))
        except grpc.RpcError as error:
            self.finish(partial(self._failure, error))
        finally:
            self.finish(lambda: self._lost("the connection was closed"))
            self._call.cancel()
            self._writer.cancel()

    async def _deliver(self) -> bool:
        """Read a message and hand out what is in it; False if there is none any more.

        Nothing is kept of it: a message may be large, and the next one far.
        """
        data = await self._call.read()
        if data is _EOF:
            return False
        when = self._loop.time()
        is_large = len(data) > LARGE_BYTES
        try:
            if is_large:
                await _counted(data, system_pb2.ProcessStreamResponse)
            outcomes = system_pb2.ProcessStreamResponse.FromString(data).outcomes
        except DecodeError:
            await self._salvage(data, is_large, when)
        else:
            if is_large:
                large = [(outcome.call_id, LargeOutcome(outcome)) for outcome in outcomes]
                self.arrived(large, when)
            else:
                self.arrived([(outcome.call_id, outcome) for outcome in outcomes], when)
        return True

    async def _salvage(self, data: bytes, is_large: bool, when: float) -> None:
        """Decode the outcomes of a message one by one, so that only bad ones fail."""
        try:
            for piece in pieces(data, field=1):
                outcome: Any
                try:
                    if is_large:
                        await _counted(piece, system_pb2.ProcessOutcome)
                    outcome = system_pb2.ProcessOutcome.FromString(piece)
                    call_id = outcome.call_id
                    outcome = LargeOutcome(outcome) if is_large else outcome
                except DecodeError as error:
                    outcome = UndecodableOutcome(str(error) if isinstance(error, Crowded) else "")
                    call_id = next(pieces(piece, field=1)).decode()
                self.arrived([(call_id, outcome)], when)
        except (ValueError, StopIteration):
            self.finish(lambda: self._garbled("it sent a message that cannot be decoded"))
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
