"""Attachments: Python objects offered to a daemon that cannot dial this process."""

import asyncio
import random
import sys
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, cast

import grpc
import grpc.aio

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_client.errors import NotServable, Refused
from cbench_client.host.background import GRACE_S, LoopThread, ending_on_signals, wait_until_done
from cbench_client.host.host import host_for
from cbench_client.host.limits import QUEUE_FACTOR
from cbench_client.host.servable import Servable, Servables
from cbench_client.host.session import Session, raise_status
from cbench_client.remote.channel import Tls, check_token, open_channel

BACKOFF_MIN_S, BACKOFF_MAX_S = 0.1, 10.0
# How long a daemon may take to notice that our last connection is dead.
STALE_NAME_S = 30.0
_MAX_IN_FLIGHT = 256

_FINAL = {
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.FAILED_PRECONDITION,
}


class Attachment:
    """An attachment in its own thread, renewed whenever it breaks.

    Args:
        systems: One object, or several of any kind, told apart by their methods.
        server: Where the daemon listens.
        max_in_flight: Calls the daemon may have outstanding here at once; by
            default as many as the objects run.
        tls: `True`, or `Tls(...)` for certificates of your own.
        token: The bearer token the daemon wants.
    """

    def __init__(
        self,
        systems: Servables = (),
        server: str = "127.0.0.1:50051",
        *,
        memory_systems: Iterable[Servable] = (),
        evaluators: Iterable[Servable] = (),
        max_concurrency: int | None = None,
        max_in_flight: int | None = None,
        tls: Tls | bool | None = None,
        token: str | None = None,
    ) -> None:
        check_token(server, tls, token)
        self.server = server
        self._host = host_for(systems, memory_systems, evaluators, max_concurrency)
        if max_in_flight is not None and max_in_flight < 1:
            raise NotServable(f"max_in_flight is {max_in_flight}; it must be at least 1.")
        # Never more than run and wait here, or the daemon would be refused.
        most = self._host.total_limit * (1 + QUEUE_FACTOR)
        self._limit = min(max_in_flight or min(self._host.total_limit, _MAX_IN_FLIGHT), most)
        self._tls, self._token = tls, token
        self._thread = LoopThread("cbench-attach")
        self._attached: Future[str] = Future()
        self._stopping = asyncio.Event()
        self._grace = GRACE_S
        self._last_seen: float | None = None
        self._failures = 0

    @property
    def names(self) -> list[str]:
        """The names of all that is offered."""
        return self._host.names

    @property
    def ended(self) -> Future[None]:
        """Done when the attachment is over; holds `Refused` if the daemon refused it."""
        return self._thread.result

    def start(self) -> "Attachment":
        """Start dialling, and keep at it. See `wait_attached`."""
        self._thread.start(self._main())
        return self

    def wait_attached(self, timeout: float | None = None) -> str:
        """Wait for the daemon's first welcome and return the attachment's id.

        Raises `Refused` if the daemon declines, `TimeoutError` if it is silent.
        """
        return self._attached.result(timeout)

    def begin_to_stop(self) -> None:
        """Take no more calls; it ends when those in progress have."""
        self._thread.call(self._stopping.set)

    def stop(self, grace: float = GRACE_S) -> None:
        """Take no more calls, finish those in progress within `grace` seconds, and end."""
        self._grace = grace
        self.begin_to_stop()
        self._thread.join(grace)

    def __enter__(self) -> "Attachment":
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    async def _main(self) -> None:
        stopping = asyncio.create_task(self._stopping.wait())
        attaching = asyncio.create_task(self._keep_attached())
        try:
            await asyncio.wait({stopping, attaching}, return_when=asyncio.FIRST_COMPLETED)
            if not attaching.done():
                await asyncio.wait({attaching}, timeout=self._grace)
            if attaching.done():
                attaching.result()
        except Refused as refusal:
            if not self._attached.done():
                self._attached.set_exception(refusal)
            raise
        finally:
            attaching.cancel()
            self._host.close()
            if not self._attached.done():
                self._attached.set_exception(TimeoutError(f"never attached to {self.server}"))

    async def _keep_attached(self) -> None:
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
                f"{self.server} refused the attachment of {', '.join(self.names)}: {details}",
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
            print(f"attached {', '.join(self.names)} to {self.server}", file=sys.stderr)
            if not self._attached.done():
                self._attached.set_result(message.welcome.attachment_id)


def attach(
    systems: Servables = (),
    server: str = "127.0.0.1:50051",
    *,
    memory_systems: Iterable[Servable] = (),
    evaluators: Iterable[Servable] = (),
    max_concurrency: int | None = None,
    max_in_flight: int | None = None,
    tls: Tls | bool | None = None,
    token: str | None = None,
) -> None:
    """Attach until SIGINT or SIGTERM, then finish the calls in progress and return.

    Takes what `Attachment` takes. A broken connection is renewed for as long
    as it takes. Raises `Refused` when the daemon will not have it.
    """
    attachment = Attachment(
        systems,
        server,
        memory_systems=memory_systems,
        evaluators=evaluators,
        max_concurrency=max_concurrency,
        max_in_flight=max_in_flight,
        tls=tls,
        token=token,
    )
    with ending_on_signals(attachment.begin_to_stop), attachment:
        wait_until_done(attachment.ended)
        attachment.ended.result()
