"""The daemon's side of `Gateway.Attach`, controlled by a case."""

import asyncio
import itertools
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_client.remote.channel import MAX_MESSAGE_BYTES
from cbench_server.conformance.outcomes import EOF
from cbench_server.conformance.streamed import Attached

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),
)
_Context = grpc.aio.ServicerContext[Any, Any]


class Session:
    """One attachment, from its hello to its end."""

    def __init__(self, hello: gateway_pb2.Hello, authorization: str) -> None:
        self.hello = hello
        self.authorization = authorization
        self.outgoing: asyncio.Queue[gateway_pb2.AttachResponse | None] = asyncio.Queue()
        self.calls = Attached(self.outgoing.put_nowait)
        self.drained = asyncio.Event()
        self.ended = asyncio.Event()

    def break_off(self) -> None:
        """End the stream with an error, as a dying daemon does."""
        self.outgoing.put_nowait(None)


class Gateway:
    """Accepts attachments, one after the other, on a port that survives `stop`."""

    def __init__(self, tls: tuple[Path, Path] | None = None) -> None:
        self.target = "127.0.0.1:0"
        self.refusals: list[grpc.StatusCode] = []
        self.attempts = 0
        self._tls = tls
        self._sessions: asyncio.Queue[Session] = asyncio.Queue()
        self._server: grpc.aio.Server | None = None
        self._numbers = itertools.count(1)

    async def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        server = grpc.aio.server(options=_OPTIONS)
        handler: Any = grpc.stream_stream_rpc_method_handler(self._attach)
        service = grpc.method_handlers_generic_handler("cbench.v1.Gateway", {"Attach": handler})
        server.add_generic_rpc_handlers((service,))
        if self._tls is None:
            port = server.add_insecure_port(self.target)
        else:
            cert, key = (path.read_bytes() for path in self._tls)
            credentials = grpc.ssl_server_credentials([(key, cert)])
            port = server.add_secure_port(self.target, credentials)
        self.target = f"127.0.0.1:{port}"
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """End all attachments and stop listening."""
        if self._server is not None:
            await self._server.stop(0)
            self._server = None

    async def next_session(self) -> Session:
        """Wait for the next attachment that is not refused."""
        return await self._sessions.get()

    async def _attach(self, _: Any, context: _Context) -> None:
        self.attempts += 1
        data = await context.read()
        hello = gateway_pb2.AttachRequest.FromString(b"" if data is EOF else data).hello
        if self.refusals:
            await context.abort(self.refusals.pop(0), "refused by the conformance suite")
        metadata = dict(context.invocation_metadata() or ())
        session = Session(hello, str(metadata.get("authorization", "")))
        welcome = gateway_pb2.Welcome(attachment_id=f"conformance-{next(self._numbers)}")
        await context.write(gateway_pb2.AttachResponse(welcome=welcome).SerializeToString())
        self._sessions.put_nowait(session)
        reader = asyncio.create_task(_read(context, session))
        writer = asyncio.create_task(_write(context, session))
        try:
            await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
            if not reader.done():
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the conformance suite hangs up")
        finally:
            session.calls.end()
            session.ended.set()
            for task in (reader, writer):
                task.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)


async def _read(context: _Context, session: Session) -> None:
    while (data := await context.read()) is not EOF:
        message = gateway_pb2.AttachRequest.FromString(data)
        session.calls.deliver(message.results)
        if message.HasField("drain"):
            session.drained.set()


async def _write(context: _Context, session: Session) -> None:
    with suppress(grpc.RpcError, asyncio.InvalidStateError):
        while (message := await session.outgoing.get()) is not None:
            await context.write(message.SerializeToString())
