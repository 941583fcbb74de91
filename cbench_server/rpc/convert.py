"""Messages to rows, runs and events, and back; the only place that knows both."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cbench_client import convert as wire
from cbench_client import errors as wire_errors
from cbench_client._gen.cbench.v1 import bench_pb2, evaluator_pb2, failure_pb2, system_pb2
from cbench_server.errors import InvalidSpec, Unencodable
from cbench_server.events import (
    Progressed,
    RowScored,
    RunAccepted,
    RunFinished,
    StateChanged,
    Stored,
)
from cbench_server.results import EvalRow, Failure
from cbench_server.spec import (
    DatasetRef,
    EvaluatorRef,
    MetricRef,
    ModelRef,
    Run,
    RunSpec,
    RunState,
    SystemRef,
    TlsRef,
)
from cbench_server.systems.caller import SystemDescription

_STATES: dict[RunState, Any] = {
    state: bench_pb2.RunState.Value(f"RUN_STATE_{state.name}") for state in RunState
}
_STATE_NAMES = {number: state for state, number in _STATES.items()}


def states_from_proto(numbers: Iterable[int]) -> list[RunState]:
    """Decode run states; those unknown to this version are left out."""
    return [_STATE_NAMES[number] for number in numbers if number in _STATE_NAMES]


# Specs.


def spec_from_proto(message: bench_pb2.RunSpec) -> RunSpec:
    """Decode a spec, filling in what is unset."""
    return RunSpec(
        systems=tuple(_system_ref(system) for system in message.systems),
        datasets=tuple(_dataset_ref(dataset) for dataset in message.datasets),
        evaluators=tuple(evaluator_ref(evaluator) for evaluator in message.evaluators),
        metrics=tuple(
            MetricRef(metric.name, wire.fields_from_proto(metric.options))
            for metric in message.metrics
        ),
        row_timeout=_seconds(
            message, "row_timeout", 600.0 if message.kind == bench_pb2.RUN_KIND_MEMORY else 60.0
        ),
        max_concurrency=message.max_concurrency if message.HasField("max_concurrency") else None,
        expose_reference_fields=message.expose_reference_fields,
        labels=dict(message.labels),
        kind="memory" if message.kind == bench_pb2.RUN_KIND_MEMORY else "process",
        repeats=message.repeats if message.HasField("repeats") else 1,
        max_failures=message.max_failures,
        reader=_model_ref(message.reader) if message.HasField("reader") else None,
        score_field=message.score_field,
        threshold=message.threshold if message.HasField("threshold") else 0.7,
        tokenizer=message.tokenizer,
        text_fields=tuple(message.text_fields),
        seed=message.seed,
        reuse=message.reuse,
        wait_timeout=_seconds(message, "wait_timeout", 600.0),
        replace_evaluators=message.replace_evaluators,
        reference_fields=tuple(message.reference_fields),
        query_budget=message.query_budget if message.HasField("query_budget") else None,
        question_types=tuple(message.question_types),
    )


def _seconds(message: Any, name: str, default: float) -> float:
    if not message.HasField(name):
        return default
    seconds: float = getattr(message, name).ToNanoseconds() / 1e9
    return seconds


def _system_ref(message: bench_pb2.SystemRef) -> SystemRef:
    if message.WhichOneof("location") is None:
        raise InvalidSpec(
            f'system "{message.name}" has no location: set target, attached, builtin or proxy.'
        )
    return SystemRef(
        name=message.name,
        target=message.target,
        attached=message.attached,
        builtin=message.builtin,
        proxy=_model_ref(message.proxy) if message.HasField("proxy") else None,
        served_name=message.served_name,
        options=wire.fields_from_proto(message.options),
        tls=TlsRef(message.tls.ca_pem, message.tls.server_name)
        if message.HasField("tls")
        else None,
        credential=message.credential,
    )


def _model_ref(message: bench_pb2.ModelRef) -> ModelRef:
    return ModelRef(
        base_url=message.base_url,
        model=message.model,
        credential=message.credential,
        options=wire.fields_from_proto(message.options),
        system_prompt=message.system_prompt,
    )


def evaluator_ref(message: bench_pb2.EvaluatorRef) -> EvaluatorRef:
    """Decode where to find an evaluator."""
    return EvaluatorRef(
        name=message.name,
        target=message.target,
        attached=message.attached,
        options=wire.fields_from_proto(message.options),
    )


def _dataset_ref(message: bench_pb2.DatasetRef) -> DatasetRef:
    return DatasetRef(
        name=message.name,
        config=message.config,
        max_examples=message.max_examples if message.HasField("max_examples") else None,
        upload=message.upload,
        split=message.split,
        shuffle=message.shuffle,
        where=dict(message.where),
        skip_bad_lines=message.skip_bad_lines,
        revision=message.revision,
    )


def spec_to_proto(spec: RunSpec) -> bench_pb2.RunSpec:
    """Encode a spec."""
    message = bench_pb2.RunSpec(
        max_concurrency=spec.max_concurrency,
        expose_reference_fields=spec.expose_reference_fields,
        labels=spec.labels,
        kind=bench_pb2.RUN_KIND_MEMORY if spec.kind == "memory" else bench_pb2.RUN_KIND_PROCESS,
        repeats=spec.repeats,
        max_failures=spec.max_failures,
        score_field=spec.score_field,
        threshold=spec.threshold,
        tokenizer=spec.tokenizer,
        text_fields=spec.text_fields,
        seed=spec.seed,
        reuse=spec.reuse,
        replace_evaluators=spec.replace_evaluators,
        reference_fields=spec.reference_fields,
        query_budget=spec.query_budget,
        question_types=spec.question_types,
    )
    _set_seconds(message.row_timeout, spec.row_timeout)
    _set_seconds(message.wait_timeout, spec.wait_timeout)
    for ref in spec.systems:
        system = message.systems.add(
            name=ref.name, served_name=ref.served_name, credential=ref.credential
        )
        for location in ("target", "attached", "builtin"):
            if value := getattr(ref, location):
                setattr(system, location, value)
        if ref.proxy is not None:
            _model_to_proto(ref.proxy, system.proxy)
        if ref.tls is not None:
            system.tls.ca_pem = ref.tls.ca_pem
            system.tls.server_name = ref.tls.server_name
        wire.fields_to_proto(ref.options, system.options)
    for dataset in spec.datasets:
        message.datasets.add(
            name=dataset.name,
            config=dataset.config,
            max_examples=dataset.max_examples,
            upload=dataset.upload,
            split=dataset.split,
            shuffle=dataset.shuffle,
            where=dataset.where,
            skip_bad_lines=dataset.skip_bad_lines,
            revision=dataset.revision,
        )
    for evaluator in spec.evaluators:
        entry = message.evaluators.add(name=evaluator.name)
        for location in ("target", "attached"):
            if value := getattr(evaluator, location):
                setattr(entry, location, value)
        wire.fields_to_proto(evaluator.options, entry.options)
    for metric in spec.metrics:
        wire.fields_to_proto(metric.options, message.metrics.add(name=metric.name).options)
    if spec.reader is not None:
        _model_to_proto(spec.reader, message.reader)
    return message


def _model_to_proto(ref: ModelRef, message: bench_pb2.ModelRef) -> None:
    message.base_url = ref.base_url
    message.model = ref.model
    message.credential = ref.credential
    message.system_prompt = ref.system_prompt
    wire.fields_to_proto(ref.options, message.options)


def _set_seconds(message: Any, seconds: float) -> None:
    """Set a Duration or Timestamp; by hand, which takes a quarter of FromNanoseconds' time."""
    whole, part = divmod(round(seconds * 1e9), 1_000_000_000)
    if whole:
        message.seconds = whole
    message.nanos = part


# Runs and their events.


def run_to_proto(run: Run, *, with_config: bool = True) -> bench_pb2.Run:
    """Encode a run."""
    message = bench_pb2.Run(
        run_id=run.run_id,
        spec=spec_to_proto(run.spec),
        state=_STATES[run.state],
        waiting_reason=run.waiting_reason,
        parent_run_id=run.parent_run_id,
        last_sequence=run.last_seq,
    )
    _set_seconds(message.create_time, run.create_time)
    if run.end_time is not None:
        _set_seconds(message.end_time, run.end_time)
    message.progress.CopyFrom(progress_to_proto(run))
    for system in run.systems:
        _summary_to_proto(run, system, message.summaries.add(system=system))
    if run.failure is not None:
        failure_to_proto(run.failure, message.failure)
    if with_config:
        wire.fields_to_proto(run.config, message.config)
    return message


def _summary_to_proto(run: Run, system: str, message: bench_pb2.SystemSummary) -> None:
    for key, value in run.summary.get(system, {}).items():
        if value is None or not math.isfinite(value):
            message.undefined_metrics.append(key)
        else:
            message.metrics[key] = value
    _set_seconds(message.elapsed, run.timing.get(system, 0.0))


def progress_to_proto(run: Run) -> bench_pb2.Progress:
    """Encode how far a run has come."""
    message = bench_pb2.Progress(
        completed_rows=run.completed_rows, failed_rows=run.failed_rows, total_rows=run.total_rows
    )
    for system in run.systems:
        if progress := run.progress.get(system):
            message.systems.add(
                system=system,
                completed_rows=progress.completed,
                failed_rows=progress.failed,
                reused_rows=progress.reused,
            )
    return message


def event_to_proto(
    entry: Stored | Progressed, message: bench_pb2.RunEvent, *, processed: bool = False
) -> None:
    """Encode an event; progress has no sequence."""
    if isinstance(entry, Progressed):
        message.progress.CopyFrom(progress_to_proto(entry.run))
        return
    message.sequence = entry.seq
    _set_seconds(message.create_time, entry.time)
    event = entry.event
    if isinstance(event, RowScored):
        row_to_proto(event.row, message.row, processed=processed)
    elif isinstance(event, RunAccepted):
        message.accepted.CopyFrom(run_to_proto(event.run))
    elif isinstance(event, RunFinished):
        message.finished.CopyFrom(run_to_proto(event.run))
    elif isinstance(event, StateChanged):
        message.state_change.state = _STATES[event.state]
        message.state_change.reason = event.reason


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
    _set_seconds(message.latency, row.latency)
    _set_seconds(message.queue_time, row.queue_time)
    _set_seconds(message.scoring_time, row.scoring_time)
    if row.reader_time:
        _set_seconds(message.reader_time, row.reader_time)
    if row.ingest_time:
        _set_seconds(message.ingest_time, row.ingest_time)
    if row.stored_bytes is not None:
        message.stored_bytes = row.stored_bytes
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


def failure_to_proto(failure: Failure, message: failure_pb2.Failure) -> None:
    """Encode a failure."""
    message.origin = wire.ORIGINS.get(failure.origin, failure_pb2.FAILURE_ORIGIN_UNSPECIFIED)
    message.reason = failure.reason
    message.message = failure.message
    message.retryable = failure.retryable
    message.stack_trace = failure.stack_trace
    message.attempts = failure.attempts


# Components.


def description_from_info(
    info: system_pb2.SystemInfo, location: str, sdk: str = ""
) -> SystemDescription:
    """Decode what a system says of itself."""
    return SystemDescription(
        name=info.name,
        version=info.version,
        description=info.description,
        max_concurrency=info.max_concurrency if info.HasField("max_concurrency") else None,
        location=location,
        sdk=sdk,
    )


def evaluator_info(evaluator: Any, location: str = "builtin") -> evaluator_pb2.EvaluatorInfo:
    """Encode what an evaluator, or its class, says of itself."""
    info = evaluator_pb2.EvaluatorInfo(
        name=evaluator.name,
        description=str(getattr(evaluator, "description", "") or ""),
        required_fields=list(getattr(evaluator, "required_fields", ())),
        version=str(getattr(evaluator, "version", "") or ""),
        location=location,
    )
    for score in getattr(evaluator, "score_infos", ()):
        info.scores.add(
            name=score.name,
            description=score.description,
            higher_is_better=score.higher_is_better,
        )
    return info


def score_response(
    scores: Mapping[str, float], details: Mapping[str, Any]
) -> evaluator_pb2.ScoreResponse:
    """Encode the scores of one pair; the explanation is the details' own, where there is one."""
    response = evaluator_pb2.ScoreResponse(
        scores=dict(scores), explanation=str(details.get("explanation", ""))
    )
    try:
        wire.fields_to_proto(details, response.details)
    except wire_errors.Unencodable as error:
        raise Unencodable(f"the evaluator's details cannot be sent: {error}") from error
    return response
