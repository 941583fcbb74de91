"""Statuses of gRPC for our errors: the one table, and how a call ends by it."""

import logging
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError

from cbench_client.errors import Unencodable as UnencodableMessage
from cbench_client.messages import error_details
from cbench_server import errors
from cbench_server.rpc import advice

log = logging.getLogger(__name__)

REASON_KEY = "cbench-reason"
"""Trailing metadata that carries an error's stable reason."""

FLAGS = "flags"
"""The key in the details of an error under which our command line finds the way out in flags."""

# gRPC drops trailers of more than 8 kB, with the error in them; a message goes in twice, and each
# of its bytes may take three.
_MAX_MESSAGE_BYTES = 1_500

# The first class that matches decides.
_CODES: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (errors.NotFound, grpc.StatusCode.NOT_FOUND),
    (errors.DatasetAway, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.InvalidInput, grpc.StatusCode.INVALID_ARGUMENT),
    (UnencodableMessage, grpc.StatusCode.INVALID_ARGUMENT),
    (DecodeError, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.AlreadyExists, grpc.StatusCode.ALREADY_EXISTS),
    (errors.WrongState, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.SystemUnreachable, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.Unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
    (errors.Forbidden, grpc.StatusCode.PERMISSION_DENIED),
    (errors.LimitReached, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.ShuttingDown, grpc.StatusCode.UNAVAILABLE),
    (errors.StoreAway, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.StoreError, grpc.StatusCode.DATA_LOSS),
    (errors.CbenchError, grpc.StatusCode.INTERNAL),
)


def code_of(error: Exception) -> grpc.StatusCode:
    """Return the status an error ends a call with."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return grpc.StatusCode.INTERNAL


def _sendable(message: str) -> str:
    """Cut what somebody put into a name, and if that is not enough, the end."""
    encoded = errors.shortened(message).encode(errors="replace")
    if len(encoded) <= _MAX_MESSAGE_BYTES:
        return encoded.decode()
    return encoded[:_MAX_MESSAGE_BYTES].decode(errors="ignore") + "…"


def told(error: Exception) -> tuple[str, str]:
    """Return the reason of an error, and what the client is told of it."""
    if isinstance(error, errors.CbenchError | UnencodableMessage):
        return error.reason, str(error)
    if isinstance(error, DecodeError):
        return code_of(error).name, f"a message cannot be decoded: {error}"
    log.exception("a call broke", exc_info=error)
    # What the operating system says has a path in it, which is for the log.
    why = (
        f"{type(error).__name__}: {error.strerror}"
        if isinstance(error, OSError)
        else errors.said(error)
    )
    return "INTERNAL", f"the daemon failed: {why}"


async def abort(context: Any, error: Exception) -> NoReturn:
    """End a call with the status of an error."""
    code = code_of(error)
    reason, message = told(error)
    if isinstance(error, errors.UnknownRun):
        error.field = error.field or "run_id"
    message, code_of_advice = advice.in_fields(message)
    message = _sendable(message)
    metadata = {FLAGS: getattr(error, "flags", ""), advice.KEY: code_of_advice}
    details = error_details.encode_details(
        code.value[0],
        message,
        reason,
        getattr(error, "field", ""),
        {key: value for key, value in metadata.items() if value},
    )
    await context.abort(code, message, ((REASON_KEY, reason), (error_details.KEY, details)))
    raise AssertionError("abort raises")
