"""One connection of an attachment: calls come in, results go out, until either side ends it."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_client.errors import Refused, RemoteFailure
from cbench_client.host.host import Host
from cbench_client.host.lane import Lane

_RESULTS_FIELD = 2
_EOF: Any = cast(Any, grpc.aio).EOF


class Session:
    """One connection of an attachment, from its welcome to its end."""

    def __init__(
        self,
        host: Host,
        stream: Any,
        limit: int,
        stopping: asyncio.Event,
        on_message: Callable[[gateway_pb2.AttachResponse], None],
    ) -> None:
        self._stream = stream
        self._limit = limit
        self._stopping = stopping
        self._on_message = on_message
        self._is_draining = False
        self._lane = Lane(host, gateway_pb2.CallResult, _RESULTS_FIELD, stream.write)

    async def run(self) -> None:
        """Answer calls until either side ends the stream. Raises what ended it early."""
        loop = asyncio.get_running_loop()
        reader = loop.create_task(self._read())
        sender = loop.create_task(self._lane.send())
        drainer = loop.create_task(self._drain_when_stopping())
        reader.add_done_callback(lambda _: self._lane.close())
        try:
            await asyncio.wait({reader, sender}, return_when=asyncio.FIRST_COMPLETED)
            if sender.done() and not reader.done():
                sender.result()
                await self._stream.done_writing()
                await reader
            if reader.done():
                reader.result()
            await raise_status(self._stream)
        finally:
            # What is still in progress is dropped: the daemon asks again.
            self._lane.abandon()
            for task in (reader, sender, drainer):
                task.cancel()
            await asyncio.gather(reader, sender, drainer, return_exceptions=True)

    async def _read(self) -> None:
        while (data := await self._stream.read()) is not _EOF:
            try:
                message = gateway_pb2.AttachResponse.FromString(data)
            except DecodeError as error:
                raise Refused(
                    f"the daemon sent what is not an AttachResponse: {error}", code="INTERNAL"
                ) from error
            self._on_message(message)
            for call in message.calls:
                self._start(call)
            for call_id in message.cancel_call_ids:
                self._lane.cancel(call_id)
            if message.HasField("drain"):
                self._lane.close()
            await self._lane.backlog_written()

    def _start(self, call: gateway_pb2.Call) -> None:
        kind = call.WhichOneof("work")
        if kind is None:
            text = "this SDK does not know the work asked for; update cbench-client"
            self._lane.fail(call.call_id, RemoteFailure(text, reason="UNIMPLEMENTED"))
        elif self._is_draining:
            failure = RemoteFailure("shutting down", reason="UNAVAILABLE", retryable=True)
            self._lane.fail(call.call_id, failure)
        elif self._lane.held >= self._limit:
            failure = RemoteFailure(
                f"more than the {self._limit} calls in flight that were announced",
                reason="RESOURCE_EXHAUSTED",
                retryable=True,
            )
            self._lane.fail(call.call_id, failure)
        else:
            if kind == "ingest" and not call.ingest.call_id:
                call.ingest.call_id = call.call_id
            timeout = call.timeout if call.HasField("timeout") else None
            trace = (call.traceparent, call.tracestate)
            self._lane.start(kind, getattr(call, kind), call.call_id, timeout, kind, trace)

    async def _drain_when_stopping(self) -> None:
        await self._stopping.wait()
        self._is_draining = True
        drain = gateway_pb2.AttachRequest(drain=gateway_pb2.Drain(reason="the process ends"))
        # Through the lane, because a gRPC stream takes one write at a time.
        self._lane.put_message(drain.SerializeToString())
        self._lane.close()


async def raise_status(stream: Any) -> None:
    """Raise the status of a stream that is over, unless it ended well."""
    code = await stream.code()
    if code is not grpc.StatusCode.OK:
        raise grpc.aio.AioRpcError(
            code,
            await stream.initial_metadata(),
            await stream.trailing_metadata(),
            await stream.details(),
            None,
        )
