"""Single calls to one service of another process: bytes out, bytes in, one attempt each."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from cbench_client.errors import RemoteFailure
from cbench_client.remote.calls import UNTRACED
from cbench_client.remote.channel import Tls, open_channel
from cbench_client.remote.diagnosis import explain_async
from cbench_client.remote.pulse import Pulse
from cbench_client.remote.standstill import was_stopped
from cbench_client.remote.status import failure_of

_HEALTH_POLL_SECONDS = 0.2
# More often than every five minutes is refused by servers that are not set up for it.
_SELDOM_PINGED = (("grpc.keepalive_time_ms", 330_000),)


class UnaryConnection:
    """Calls the methods of `service` at one target. Belongs to the loop it is made on.

    Answers are handed out as bytes: one that cannot be decoded must cost its
    own call, and gRPC would report it as the connection's failure.
    """

    def __init__(
        self,
        target: str,
        service: str,
        *,
        tls: Tls | bool | None = None,
        token: str | None = None,
        origin: str = "system",
    ) -> None:
        self.target = target
        self.channel = cast(Any, open_channel(target, tls=tls, token=token, options=_SELDOM_PINGED))
        self._service = service
        self._tls = tls
        self._has_token = bool(token)
        self._origin = origin
        self._methods: dict[str, Any] = {}
        self._out: set[Any] = set()
        self._broken: set[Any] = set()
        self.pulse = Pulse(target, tls, lambda: bool(self._out), self.break_off)
        self._check_health = self.channel.unary_unary("/grpc.health.v1.Health/Check")

    async def describe(self, timeout: float) -> bytes:
        """Ask what is served. Raises `Unreachable` with the likely cause, or `Refused`."""
        try:
            return cast(bytes, await self._method("Describe")(b"", timeout=timeout))
        except grpc.RpcError as error:
            raise await explain_async(
                self.target,
                self._service,
                error,
                tls=self._tls,
                has_token=self._has_token,
                timeout=timeout,
            ) from None

    async def call(
        self, name: str, request: bytes, timeout: float, trace: Mapping[str, str] = UNTRACED
    ) -> bytes:
        """Call a method once. Raises `RemoteFailure`."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        made = self.start(name, request, timeout, trace)
        self._out.add(made)
        self.pulse.watch()
        try:
            data = await made
        except grpc.RpcError as error:
            failure = failure_of(error, self.target, origin=self._origin)
            failure = self.heard(failure, loop.time() - started - timeout)
            raise await self.late_or_lost(failure) from None
        except asyncio.CancelledError:
            if made in self._broken:
                raise self.lost() from None
            raise
        finally:
            self._out.discard(made)
            self._broken.discard(made)
        self.pulse.heard = loop.time()
        return cast(bytes, data)

    def heard(self, failure: RemoteFailure, late: float) -> RemoteFailure:
        """Return why a call failed, which ended so many seconds after its time."""
        # gRPC ends a call whose time is up before it reads that it was answered.
        if _is_late(failure) and was_stopped(late):
            return self.lost("was not heard, since this process was stopped.")
        return failure

    async def late_or_lost(self, failure: RemoteFailure) -> RemoteFailure:
        """Tell a call that took too long from one that never reached anybody."""
        return self.lost() if _is_late(failure) and not await self.pulse.is_felt() else failure

    def lost(self, how: str = "did not answer, and takes no new connection.") -> RemoteFailure:
        """Say that the process is not there any more, or what else became of its answer."""
        return RemoteFailure(
            f"{self.target} {how}",
            origin="transport",
            reason="UNAVAILABLE",
            retryable=True,
        )

    def break_off(self) -> None:
        """Have the calls that are out fail as lost."""
        self._broken |= self._out
        for made in list(self._out):
            made.cancel()

    def start(
        self, name: str, request: bytes, timeout: float, trace: Mapping[str, str] = UNTRACED
    ) -> Any:
        """Start a call of a method and return gRPC's object for it; see `result`."""
        metadata = tuple(trace.items()) or None
        return self._method(name)(request, timeout=timeout, metadata=metadata)

    def result(self, call: Any) -> bytes:
        """Return what a started call gave, once it is over. Raises `RemoteFailure`."""
        try:
            call.__await__().send(None)
        except StopIteration as over:  # How a coroutine returns to what drives it.
            return cast(bytes, over.value)
        except grpc.RpcError as error:
            raise failure_of(error, self.target, origin=self._origin) from None
        except asyncio.CancelledError:
            pass  # By the channel, which was closed.
        raise RemoteFailure(
            f"the call to {self.target} was broken off.",
            origin="transport",
            reason="UNAVAILABLE",
            retryable=True,
        )

    @property
    def is_connected(self) -> bool:
        """Whether the connection stands; if not, asks for it to be made."""
        state = self.channel.get_state(try_to_connect=True)
        return bool(state is grpc.ChannelConnectivity.READY)

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the process is there and willing; False if it is not in time."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    state = self.channel.get_state(try_to_connect=True)
                    if state is not grpc.ChannelConnectivity.READY:
                        await self.channel.wait_for_state_change(state)
                    elif await self._is_serving(timeout):
                        return True
                    else:
                        await asyncio.sleep(_HEALTH_POLL_SECONDS)
        except TimeoutError:
            return False

    async def close(self) -> None:
        """Close the connection; calls in flight fail."""
        await self.pulse.stop()
        await self.channel.close(None)

    def _method(self, name: str) -> Any:
        if name not in self._methods:
            self._methods[name] = self.channel.unary_unary(f"/{self._service}/{name}")
        return self._methods[name]

    async def _is_serving(self, timeout: float) -> bool:
        request = health_pb2.HealthCheckRequest(service=self._service)
        try:
            data = await self._check_health(request.SerializeToString(), timeout=timeout)
            answer = health_pb2.HealthCheckResponse.FromString(data)
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
        except DecodeError:
            return False
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.NOT_FOUND):
                return False
        try:
            # A server that does not report its health is taken at its word.
            await self._method("Describe")(b"", timeout=timeout)
        except grpc.RpcError:
            return False
        return True


def _is_late(failure: RemoteFailure) -> bool:
    return failure.reason == "DEADLINE_EXCEEDED" and failure.origin != "transport"
