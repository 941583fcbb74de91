"""Failures of calls, to messages and back."""

from cbench_client._gen.cbench.v1 import failure_pb2
from cbench_client.errors import RemoteFailure

ORIGINS = {
    "system": failure_pb2.FAILURE_ORIGIN_SYSTEM,
    "evaluator": failure_pb2.FAILURE_ORIGIN_EVALUATOR,
    "transport": failure_pb2.FAILURE_ORIGIN_TRANSPORT,
    "daemon": failure_pb2.FAILURE_ORIGIN_DAEMON,
    "dataset": failure_pb2.FAILURE_ORIGIN_DATASET,
    "reader": failure_pb2.FAILURE_ORIGIN_READER,
}
_ORIGIN_NAMES = {number: name for name, number in ORIGINS.items()}


def failure_to_proto(failure: RemoteFailure, message: failure_pb2.Failure) -> None:
    """Encode a failure."""
    message.origin = ORIGINS.get(failure.origin, failure_pb2.FAILURE_ORIGIN_UNSPECIFIED)
    message.reason = failure.reason
    message.message = _as_text(str(failure))
    message.retryable = failure.retryable
    if failure.retry_delay is not None:
        message.retry_delay.FromNanoseconds(round(failure.retry_delay * 1e9))
    message.stack_trace = _as_text(failure.stack_trace)
    message.attempts = failure.attempts


def failure_from_proto(message: failure_pb2.Failure) -> RemoteFailure:
    """Decode a failure."""
    delay = None
    if message.HasField("retry_delay"):
        delay = message.retry_delay.ToNanoseconds() / 1e9
    return RemoteFailure(
        message.message,
        origin=_ORIGIN_NAMES.get(message.origin, "system"),
        reason=message.reason or "UNSPECIFIED",
        retryable=message.retryable,
        retry_delay=delay,
        stack_trace=message.stack_trace,
        attempts=message.attempts,
    )


def _as_text(text: str) -> str:
    """Make any text, even one with lone surrogates, fit for the wire."""
    return text.encode(errors="replace").decode()
