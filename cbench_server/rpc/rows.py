"""Rows and failures, to messages and back. LEFT_OUT says what of a row does not travel."""

from typing import Any

from cbench_client._gen.cbench.v1 import bench_pb2, failure_pb2
from cbench_client.messages import convert as wire
from cbench_client.messages import failures
from cbench_server.results import EvalRow, Failure
from cbench_server.rpc.times import seconds_of, set_seconds

LEFT_OUT = ("carried",)
"""Fields of EvalRow that only the store needs."""


def row_to_proto(row: EvalRow, message: bench_pb2.EvalRow, *, processed: bool) -> None:
    """Encode a row, with its processed output if it is wanted and there."""
    message.system = row.system
    wire.id_to_proto(row.example_id, message.example_id)
    message.dataset = row.dataset
    message.index = row.index
    message.ordinal = row.ordinal
    message.repeat = row.repeat
    scores = message.scores
    for name, value in row.scores.items():
        scores[name] = value
    message.input_tokens = row.input_tokens
    message.output_tokens = row.output_tokens
    message.attempts = row.attempts
    message.primary_score = row.primary_score
    message.reused = row.reused
    message.group = row.group
    set_seconds(message.latency, row.latency)
    set_seconds(message.queue_time, row.queue_time)
    set_seconds(message.scoring_time, row.scoring_time)
    if row.reader_time:
        set_seconds(message.reader_time, row.reader_time)
    if row.ingest_time:
        set_seconds(message.ingest_time, row.ingest_time)
    if row.stored_bytes is not None:
        message.stored_bytes = row.stored_bytes
    message.context_only = row.context_only
    message.not_applicable.extend(row.not_applicable)
    if row.handler_seconds is not None:
        set_seconds(message.handler_time, row.handler_seconds)
    message.calls_in_flight = row.calls_in_flight
    message.alone = row.alone
    message.finish_reason = row.finish_reason
    message.marks.extend(row.marks)
    message.cost_usd.update(row.cost_usd)
    message.groups.update(row.groups)
    message.traceparent = row.traceparent
    message.replica = row.replica
    if row.usage:
        wire.usage_to_proto(row.usage, message.usage)
    if row.reader_usage:
        wire.usage_to_proto(row.reader_usage, message.reader_usage)
    if row.failure is not None:
        failure_to_proto(row.failure, message.failure)
    if row.metadata:
        wire.fields_to_proto(row.metadata, message.metadata)
    if row.context_tokens_in is not None:
        message.context_tokens_in = row.context_tokens_in
    if row.context_tokens_out is not None:
        message.context_tokens_out = row.context_tokens_out
    for evaluator in sorted({*row.details, *row.evaluator_failures}):
        note = message.evaluator_notes.add(evaluator=evaluator)
        wire.fields_to_proto(row.details.get(evaluator, {}), note.details)
        if failure := row.evaluator_failures.get(evaluator):
            failure_to_proto(failure, note.failure)
    if processed and row.processed is not None:
        wire.fields_to_proto(row.processed, message.processed)


def row_from_proto(message: bench_pb2.EvalRow) -> EvalRow:
    """Decode a row."""
    notes = message.evaluator_notes
    return EvalRow(
        system=message.system,
        example_id=wire.id_from_proto(message.example_id),
        scores={name: message.scores[name] for name in sorted(message.scores)},
        input_tokens=message.input_tokens,
        output_tokens=message.output_tokens,
        metadata=wire.fields_from_proto(message.metadata),
        latency=message.latency.ToNanoseconds() / 1e9,
        dataset=message.dataset,
        index=message.index,
        ordinal=message.ordinal,
        repeat=message.repeat,
        failure=failure_from_proto(message.failure) if message.HasField("failure") else None,
        primary_score=message.primary_score,
        context_tokens_in=optional(message, "context_tokens_in"),
        context_tokens_out=optional(message, "context_tokens_out"),
        usage=wire.usage_from_proto(message.usage) if message.HasField("usage") else None,
        attempts=message.attempts,
        queue_time=message.queue_time.ToNanoseconds() / 1e9,
        scoring_time=message.scoring_time.ToNanoseconds() / 1e9,
        reader_time=message.reader_time.ToNanoseconds() / 1e9,
        reader_usage=(
            wire.usage_from_proto(message.reader_usage)
            if message.HasField("reader_usage")
            else None
        ),
        reused=message.reused,
        group=message.group,
        details={
            note.evaluator: wire.fields_from_proto(note.details) for note in notes if note.details
        },
        evaluator_failures={
            note.evaluator: failure_from_proto(note.failure)
            for note in notes
            if note.HasField("failure")
        },
        processed=wire.fields_from_proto(message.processed) if message.processed else None,
        ingest_time=message.ingest_time.ToNanoseconds() / 1e9,
        stored_bytes=optional(message, "stored_bytes"),
        context_only=message.context_only,
        not_applicable=tuple(message.not_applicable),
        handler_seconds=seconds_of(message, "handler_time"),
        calls_in_flight=message.calls_in_flight,
        alone=message.alone,
        finish_reason=message.finish_reason,
        marks=tuple(message.marks),
        cost_usd=dict(message.cost_usd),
        groups=dict(message.groups),
        traceparent=message.traceparent,
        replica=message.replica,
    )


def failure_to_proto(failure: Failure, message: failure_pb2.Failure) -> None:
    """Encode a failure."""
    message.origin = failures.ORIGINS.get(failure.origin, failure_pb2.FAILURE_ORIGIN_UNSPECIFIED)
    message.reason = failure.reason
    message.message = failure.message
    message.retryable = failure.retryable
    message.stack_trace = failure.stack_trace
    message.attempts = failure.attempts
    message.field = failure.field


def failure_from_proto(message: failure_pb2.Failure) -> Failure:
    """Decode a failure."""
    failure = failures.failure_from_proto(message)
    return Failure(
        origin=failure.origin,
        reason=failure.reason,
        message=str(failure),
        attempts=failure.attempts,
        retryable=failure.retryable,
        stack_trace=failure.stack_trace,
        field=message.field,
    )


def optional(message: Any, name: str) -> Any:
    """Read a field that may be unset, as None where it is."""
    return getattr(message, name) if message.HasField(name) else None
