"""What the daemon sends, as the domain's own runs and rows."""

from typing import Any

from cbench_client import convert as wire
from cbench_client._gen.cbench.v1 import bench_pb2, failure_pb2
from cbench_server.reports.columns import ordered_keys
from cbench_server.results import EvalRow, Failure
from cbench_server.rpc.convert import spec_from_proto, states_from_proto
from cbench_server.spec import Run, RunState, SystemProgress


def run_of(message: bench_pb2.Run) -> Run:
    """Decode a run."""
    progress = message.progress
    return Run(
        run_id=message.run_id,
        spec=spec_from_proto(message.spec),
        state=state_of(message.state),
        create_time=message.create_time.ToNanoseconds() / 1e9,
        end_time=_seconds(message, "end_time"),
        total_rows=progress.total_rows if progress.HasField("total_rows") else None,
        progress={
            each.system: SystemProgress(each.completed_rows, each.failed_rows, each.reused_rows)
            for each in progress.systems
        },
        summary={each.system: _metrics(each) for each in message.summaries},
        timing={
            each.system: each.elapsed.ToNanoseconds() / 1e9
            for each in message.summaries
            if each.HasField("elapsed")
        },
        failure=_failure(message.failure) if message.HasField("failure") else None,
        waiting_reason=message.waiting_reason,
        parent_run_id=message.parent_run_id,
        config=wire.fields_from_proto(message.config),
        last_seq=message.last_sequence,
        systems=tuple(each.system for each in message.summaries),
    )


def state_of(number: int) -> RunState:
    """Decode a state; one from a newer daemon counts as running."""
    return next(iter(states_from_proto([number])), RunState.RUNNING)


def row_of(message: bench_pb2.EvalRow) -> EvalRow:
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
        failure=_failure(message.failure) if message.HasField("failure") else None,
        primary_score=message.primary_score,
        context_tokens_in=_optional(message, "context_tokens_in"),
        context_tokens_out=_optional(message, "context_tokens_out"),
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
            note.evaluator: _failure(note.failure) for note in notes if note.HasField("failure")
        },
        processed=wire.fields_from_proto(message.processed) if message.processed else None,
        ingest_time=message.ingest_time.ToNanoseconds() / 1e9,
        stored_bytes=_optional(message, "stored_bytes"),
    )


def _metrics(message: bench_pb2.SystemSummary) -> dict[str, float | None]:
    values: dict[str, float | None] = dict(message.metrics)
    values.update(dict.fromkeys(message.undefined_metrics))
    return {key: values[key] for key in ordered_keys({message.system: values})}


def _failure(message: failure_pb2.Failure) -> Failure:
    failure = wire.failure_from_proto(message)
    return Failure(
        origin=failure.origin,
        reason=failure.reason,
        message=str(failure),
        attempts=failure.attempts,
        retryable=failure.retryable,
        stack_trace=failure.stack_trace,
    )


def _optional(message: Any, name: str) -> int | None:
    return getattr(message, name) if message.HasField(name) else None


def _seconds(message: Any, name: str) -> float | None:
    return getattr(message, name).ToNanoseconds() / 1e9 if message.HasField(name) else None
