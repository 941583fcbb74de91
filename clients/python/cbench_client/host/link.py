"""The link of an attachment to one daemon, renewed whenever it breaks."""

import asyncio
import random
import sys
from collections.abc import Callable
from typing import Any, cast

import grpc
import grpc.aio

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_client.errors import Refused
from cbench_client.host.host import Host
from cbench_client.host.session import Session, raise_status
from cbench_client.remote.channel import Tls, open_channel

BACKOFF_MIN_S, BACKOFF_MAX_S = 0.1, 10.0
# How long a daemon may take to notice that our last connection is dead.
STALE_NAME_S = 30.0

_FINAL = {
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.FAILED_PRECONDITION,
}


class Link:
    """Offers what a host has to the daemon at `server`, until `stopping` is set."""

    def __init__(
        self,
        host: Host,
        server: str,
        limit: int,
        stopping: asyncio.Event,
        welcomed: Callable[[str], None],
        *,
        tls: Tls | bool | None,
        token: str | None,
    ) -> None:
        self.server = server
        self._host = host
        self._limit = limit
        self._stopping = stopping
        self._welcomed = welcomed
        self._tls, self._token = tls, token
        self._last_seen: float | None = None
        self._failures = 0

    async def keep(self) -> None:
        """Stay attached; raise `Refused` if the daemon will not have it."""
        while not self._stopping.is_set():
            try:
                await self._attach_once()
            except grpc.RpcError as error:
                self._judge(cast(grpc.aio.AioRpcError, error))
            if self._stopping.is_set():
                return
            # Full jitter, so that many processes do not come back in step.
            longest = min(BACKOFF_MAX_S, BACKOFF_MIN_S * 2**self._failures)
            self._failures = min(self._failures + 1, 10)
            delay = random.uniform(BACKOFF_MIN_S / 2, longest)
            try:
                await asyncio.wait_for(self._stopping.wait(), delay)
            except TimeoutError:
                continue

    def _judge(self, error: grpc.aio.AioRpcError) -> None:
        """Raise `Refused` if trying again is of no use, else say what happened."""
        code, details = error.code(), error.details() or ""
        now = asyncio.get_running_loop().time()
        is_final = code in _FINAL
        if code is grpc.StatusCode.ALREADY_EXISTS:
            is_final = self._last_seen is None or now - self._last_seen > STALE_NAME_S
        if is_final:
            raise Refused(
                f"{self.server} refused the attachment of {', '.join(self._host.names)}: {details}",
                code=code.name,
            )
        if self._failures in (0, 10) and not self._stopping.is_set():
            print(f"not attached to {self.server}, trying again: {details}", file=sys.stderr)

    async def _attach_once(self) -> None:
        async with open_channel(self.server, tls=self._tls, token=self._token) as channel:
            # No serialisers: messages are joined and taken apart as bytes.
            stream = cast(Any, channel).stream_stream("/cbench.v1.Gateway/Attach")()
            hello = gateway_pb2.AttachRequest(hello=self._host.hello(self._limit))
            try:
                await stream.write(hello.SerializeToString())
                await Session(self._host, stream, self._limit, self._stopping, self._heard).run()
            except asyncio.InvalidStateError:
                # Writing to a stream that is over; its status says why.
                await raise_status(stream)
            finally:
                stream.cancel()

    def _heard(self, message: gateway_pb2.AttachResponse) -> None:
        self._last_seen = asyncio.get_running_loop().time()
        if message.HasField("welcome"):
            self._failures = 0
            print(f"attached {', '.join(self._host.names)} to {self.server}", file=sys.stderr)
            self._welcomed(message.welcome.attachment_id)
