"""gRPC statuses, read as failures of one call."""

import re
from typing import Any, cast

import grpc
from google.protobuf.message import DecodeError

from cbench_client._gen.cbench.v1 import failure_pb2
from cbench_client.errors import RemoteFailure
from cbench_client.messages import failures
from cbench_client.remote.diagnosis import short

# Every gRPC library words this in its own way, and most use the same status
# for it as for "too busy", which may be asked again.
_TOO_LARGE = re.compile(r"message\b.{0,30}(larger than|exceeds|too large)", re.IGNORECASE)
_BROKEN = re.compile(r"RST_STREAM|Stream removed|Socket closed|GOAWAY|Connection reset")

_TOO_LARGE_CODES = {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.OUT_OF_RANGE}
_LOST = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
_BROKEN_CODES = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
_RETRYABLE = {
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    # A first try that the other side has not yet given up.
    grpc.StatusCode.ALREADY_EXISTS,
}


def failure_of(error: grpc.RpcError, who: str, *, origin: str = "system") -> RemoteFailure:
    """Read the status of a call to `who`; `origin` is the party that answers there."""
    code = error.code() or grpc.StatusCode.UNKNOWN
    details = error.details() or ""
    trailers: dict[str, Any] = dict(cast(Any, error.trailing_metadata() or ()))
    if (told := _told(trailers)) is not None:
        return told
    reason = str(trailers.get("cbench-reason", "")) or code.name
    if is_too_large(error):
        return RemoteFailure(
            f"{_too_large(who, details)}: {short(details)}.",
            origin=origin,
            reason="MESSAGE_TOO_LARGE",
        )
    if is_lost(error):
        return RemoteFailure(
            f"the connection to {who} failed: {short(details)}.",
            origin="transport",
            reason="UNAVAILABLE" if reason == "CANCELLED" else reason,
            retryable=True,
            retry_delay=_pushback(trailers),
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return RemoteFailure(f"{who} did not answer in time.", origin=origin, reason=code.name)
    return RemoteFailure(
        details or f"{who} answered {code.name} without a word.",
        origin=origin,
        reason=reason,
        retryable=code in _RETRYABLE,
        retry_delay=_pushback(trailers),
    )


def is_lost(error: grpc.RpcError) -> bool:
    """Whether the connection broke, rather than the other side declining."""
    code = error.code()
    return code in _LOST or (code in _BROKEN_CODES and bool(_BROKEN.search(error.details() or "")))


def is_too_large(error: grpc.RpcError) -> bool:
    """Whether a message exceeded the limit of either side."""
    return error.code() in _TOO_LARGE_CODES and bool(_TOO_LARGE.search(error.details() or ""))


def _too_large(who: str, details: str) -> str:
    """Say which side found which message too large, from how gRPC's libraries put it."""
    if "CLIENT: Received" in details:
        return f"{who} answered with a larger message than is taken here"
    if "CLIENT: Sent" in details:
        return f"the request to {who} is a larger message than may be sent"
    if re.search(r"\bsen[dt]\b", details, re.IGNORECASE):
        return f"the answer of {who} is a larger message than it may send"
    return f"{who} does not take a message that large"


def _told(trailers: dict[str, Any]) -> RemoteFailure | None:
    """Read the failure that our own servers send along with the status."""
    try:
        message = failure_pb2.Failure.FromString(trailers["cbench-failure-bin"])
    except (KeyError, TypeError, DecodeError):
        return None
    return failures.failure_from_proto(message)


def _pushback(trailers: dict[str, Any]) -> float | None:
    """Read how long the server asks callers to wait, in gRPC's own trailer."""
    try:
        milliseconds = int(trailers["grpc-retry-pushback-ms"])
    except (KeyError, ValueError):
        return None
    return milliseconds / 1e3 if milliseconds >= 0 else None
