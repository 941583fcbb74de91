"""Outcomes of calls, the same for every transport, and breaches of the contract."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from cbench_client._gen.cbench.v1 import failure_pb2
from cbench_client.errors import Unencodable
from cbench_server.conformance.messages import Facts, facts_of, failure_facts

EOF: Any = cast(Any, grpc.aio).EOF

# The status that goes with a reason; others are INTERNAL, or UNAVAILABLE if retryable.
_CODES = {
    "UNKNOWN_SYSTEM": "NOT_FOUND",
    "UNKNOWN_EVALUATOR": "NOT_FOUND",
    "NOT_FOUND": "NOT_FOUND",
    "INVALID_ARGUMENT": "INVALID_ARGUMENT",
    "ALREADY_EXISTS": "ALREADY_EXISTS",
    "RESOURCE_EXHAUSTED": "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION": "FAILED_PRECONDITION",
    "DEADLINE_EXCEEDED": "DEADLINE_EXCEEDED",
    "CANCELLED": "CANCELLED",
    "UNIMPLEMENTED": "UNIMPLEMENTED",
    "UNAVAILABLE": "UNAVAILABLE",
}


class Broken(Exception):
    """The other side broke the contract; says how."""


class Pending:
    """A call under way."""

    def __init__(
        self, result: "asyncio.Future[Facts]", cancel: Callable[[], Awaitable[None]]
    ) -> None:
        self.result = result
        self.cancel = cancel


Trace = Mapping[str, str]
"""The trace context of a call: `traceparent` and `tracestate`, where it has them."""
UNTRACED: Trace = {}


class Transport(Protocol):
    """Makes calls in one way: unary, over a stream or over an attachment."""

    async def begin(
        self,
        kind: str,
        request: Any,
        call_id: str,
        timeout: float | None,
        trace: Trace = UNTRACED,
    ) -> Pending:
        """Send a call, and do not wait for its answer."""
        ...


def code_for(failure: failure_pb2.Failure) -> str:
    """Return the name of the status that belongs to a failure."""
    default = "UNAVAILABLE" if failure.retryable else "INTERNAL"
    return _CODES.get(failure.reason, default)


def status_facts(error: grpc.aio.AioRpcError) -> Facts:
    """Read how a unary call failed. Raises `Broken` if status and trailers disagree."""
    code = error.code().name
    trailers: dict[str, Any] = dict(cast(Any, error.trailing_metadata() or ()))
    data = trailers.get("cbench-failure-bin")
    if data is None:
        return {"code": code, "reason": code, "message": error.details() or "", "is_told": False}
    failure = decoded(failure_pb2.Failure.FromString, data)
    if code != code_for(failure):
        raise Broken(f"the reason {failure.reason} came with {code} instead of {code_for(failure)}")
    if trailers.get("cbench-reason") != failure.reason:
        raise Broken(f"cbench-reason is {trailers.get('cbench-reason')!r}, not {failure.reason!r}")
    facts = failure_facts(failure, code)
    facts["pushback_ms"] = trailers.get("grpc-retry-pushback-ms")
    facts["is_told"] = True
    return facts


def decoded(decode: Callable[[bytes], Any], data: bytes) -> Any:
    """Decode an answer. Raises `Broken` if that cannot be done."""
    try:
        return decode(data)
    except DecodeError as error:
        raise Broken(f"an answer that cannot be decoded: {error}") from error


def answer_facts(kind: str, response: Any, request: Any) -> Facts:
    """Return the facts of an answer. Raises `Broken` if it is not valid."""
    try:
        return facts_of(kind, response, request)
    except Unencodable as error:
        raise Broken(f"an invalid answer: {error}") from error
