"""Rows as plain dicts."""

from typing import Any, NotRequired, TypedDict, cast

from cbench_client._gen.cbench.v1 import bench_pb2, failure_pb2
from cbench_client.messages import convert, failures

_PLAIN = (
    "system",
    "dataset",
    "index",
    "repeat",
    "ordinal",
    "group",
    "primary_score",
    "input_tokens",
    "output_tokens",
    "attempts",
    "reused",
    "context_only",
    "calls_in_flight",
    "alone",
    "finish_reason",
    "traceparent",
    "replica",
)
_OPTIONAL = ("context_tokens_in", "context_tokens_out", "stored_bytes")
_SECONDS = {
    "latency": "latency",
    "queue_time": "queue_time",
    "scoring_time": "scoring_time",
    "reader_time": "reader_time",
    "ingest_time": "ingest_time",
    "handler_seconds": "handler_time",
}
_USAGES = ("usage", "reader_usage")


class FailureDict(TypedDict):
    """Why there is no result."""

    origin: str
    reason: str
    message: str
    retryable: bool
    retry_delay: float | None
    stack_trace: str
    attempts: int


class EvaluatorNoteDict(TypedDict):
    """What an evaluator had to say beyond its scores."""

    evaluator: str
    details: dict[str, Any]
    failure: FailureDict | None


class Row(TypedDict):
    """A row as `row_to_dict` gives it; `EvalRow` of the contract says what its fields mean."""

    system: str
    dataset: str
    index: int
    repeat: int
    ordinal: int
    group: str
    groups: dict[str, str]
    example_id: str | int
    primary_score: str
    scores: dict[str, float]
    not_applicable: list[str]
    marks: list[str]
    input_tokens: int
    output_tokens: int
    context_tokens_in: int | None
    context_tokens_out: int | None
    stored_bytes: int | None
    attempts: int
    reused: bool
    context_only: bool
    calls_in_flight: int
    alone: bool
    finish_reason: str
    traceparent: str
    replica: str
    latency: float | None
    queue_time: float | None
    scoring_time: float | None
    reader_time: float | None
    ingest_time: float | None
    handler_seconds: float | None
    usage: dict[str, Any] | None
    reader_usage: dict[str, Any] | None
    cost_usd: dict[str, float]
    failure: FailureDict | None
    metadata: dict[str, Any]
    evaluator_notes: list[EvaluatorNoteDict]
    processed: NotRequired[dict[str, Any]]
    original: NotRequired[dict[str, Any]]


def row_to_dict(row: bench_pb2.EvalRow) -> Row:
    """Give a row plain values: times in seconds, ids with their type, None for what is unset.

    `processed` and `original` are there only if the row carries them.
    """
    plain: dict[str, Any] = {name: getattr(row, name) for name in _PLAIN}
    plain["example_id"] = convert.id_from_proto(row.example_id)
    plain["not_applicable"] = [*row.not_applicable]
    plain["marks"] = [*row.marks]
    plain["cost_usd"] = dict(row.cost_usd)
    plain["groups"] = dict(row.groups)
    plain["scores"] = {name: row.scores[name] for name in sorted(row.scores)}
    for name in _OPTIONAL:
        plain[name] = getattr(row, name) if row.HasField(name) else None
    for name, field in _SECONDS.items():
        span = getattr(row, field)
        plain[name] = span.ToNanoseconds() / 1e9 if row.HasField(field) else None
    for name in _USAGES:
        usage = getattr(row, name)
        plain[name] = convert.usage_from_proto(usage) if row.HasField(name) else None
    plain["failure"] = failure_to_dict(row.failure) if row.HasField("failure") else None
    plain["metadata"] = convert.fields_from_proto(row.metadata)
    plain["evaluator_notes"] = [_note(note) for note in row.evaluator_notes]
    if row.processed:
        plain["processed"] = convert.fields_from_proto(row.processed)
    if row.HasField("original"):
        plain["original"] = convert.example_from_proto(row.original)
    return cast(Row, plain)


def failure_to_dict(message: failure_pb2.Failure) -> FailureDict:
    """Give a failure plain values."""
    failure = failures.failure_from_proto(message)
    return {
        "origin": failure.origin,
        "reason": failure.reason,
        "message": str(failure),
        "retryable": failure.retryable,
        "retry_delay": failure.retry_delay,
        "stack_trace": failure.stack_trace,
        "attempts": failure.attempts,
    }


def _note(note: bench_pb2.EvaluatorNote) -> EvaluatorNoteDict:
    return {
        "evaluator": note.evaluator,
        "details": convert.fields_from_proto(note.details),
        "failure": failure_to_dict(note.failure) if note.HasField("failure") else None,
    }
