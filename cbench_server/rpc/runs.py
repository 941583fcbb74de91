"""Runs, and the events of runs that are not rows, to messages and back."""

import math
from collections.abc import Iterable
from typing import Any

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.messages import convert as wire
from cbench_server.events import (
    Progressed,
    RowScored,
    RunAccepted,
    RunFinished,
    Seen,
    StateChanged,
    Unstored,
)
from cbench_server.reports.judges import marks_of
from cbench_server.rpc.rows import failure_from_proto, failure_to_proto, row_to_proto
from cbench_server.rpc.specs import spec_from_proto, spec_to_proto
from cbench_server.rpc.times import seconds_of, set_seconds
from cbench_server.spec import Run, RunNote, RunState, SystemProgress

_STATES: dict[RunState, Any] = {
    state: bench_pb2.RunState.Value(f"RUN_STATE_{state.name}") for state in RunState
}
_OF_JUDGES = ("evaluator", "dataset", "scores", "qualified")
"""What a listing says of a judge, so that no figure of one that did not pass goes unmarked."""
_LISTED = ("figure", "headlines", "roles", "suites")
"""What a listing says of how a run's figures came."""
_MARKS = "marks"
_STATE_NAMES = {number: state for state, number in _STATES.items()}


def states_from_proto(numbers: Iterable[int]) -> list[RunState]:
    """Decode run states; those unknown to this version are left out."""
    return [_STATE_NAMES[number] for number in numbers if number in _STATE_NAMES]


def state_from_proto(number: int) -> RunState:
    """Decode a state; one from a newer daemon counts as running."""
    return next(iter(states_from_proto([number])), RunState.RUNNING)


def run_to_proto(run: Run, *, with_config: bool = True) -> bench_pb2.Run:
    """Encode a run; without its config there is still which scores count, and for whom.

    So is which of them a judge gave that did not pass its controls. Every figure made of such a
    score is named in the config's `marks`, for clients that read figures and no notes.
    """
    message = bench_pb2.Run(
        run_id=run.run_id,
        spec=spec_to_proto(run.spec),
        state=_STATES[run.state],
        waiting_reason=run.waiting_reason,
        parent_run_id=run.parent_run_id,
        last_sequence=run.last_seq,
        created_by=run.created_by,
    )
    set_seconds(message.create_time, run.create_time)
    if run.end_time is not None:
        set_seconds(message.end_time, run.end_time)
    message.progress.CopyFrom(progress_to_proto(run))
    for system in run.systems:
        _summary_to_proto(run, system, message.summaries.add(system=system))
    if run.failure is not None:
        failure_to_proto(run.failure, message.failure)
    config = run.config
    if not with_config:
        config = {key: config[key] for key in _LISTED if key in config}
        if judges := run.config.get("judges"):
            config["judges"] = [{key: each.get(key) for key in _OF_JUDGES} for each in judges]
    if marks := marks_of(run):
        config = {**config, _MARKS: marks}
    wire.fields_to_proto(config, message.config)
    for note in run.notes:
        message.notes.add(code=note.code, text=note.text, system=note.system, dataset=note.dataset)
    return message


def _config_of(message: bench_pb2.Run) -> dict[str, Any]:
    config = wire.fields_from_proto(message.config)
    # What is marked follows from the rest of a run.
    config.pop(_MARKS, None)
    return config


def run_from_proto(message: bench_pb2.Run) -> Run:
    """Decode a run."""
    progress = message.progress
    return Run(
        run_id=message.run_id,
        spec=spec_from_proto(message.spec),
        state=state_from_proto(message.state),
        create_time=message.create_time.ToNanoseconds() / 1e9,
        end_time=seconds_of(message, "end_time"),
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
        failure=failure_from_proto(message.failure) if message.HasField("failure") else None,
        waiting_reason=message.waiting_reason,
        parent_run_id=message.parent_run_id,
        config=_config_of(message),
        last_seq=message.last_sequence,
        created_by=message.created_by,
        systems=tuple(each.system for each in message.summaries),
        notes=tuple(
            RunNote(note.code, note.text, note.system, note.dataset) for note in message.notes
        ),
    )


def _summary_to_proto(run: Run, system: str, message: bench_pb2.SystemSummary) -> None:
    for key, value in run.summary.get(system, {}).items():
        if value is None or not math.isfinite(value):
            message.undefined_metrics.append(key)
        else:
            message.metrics[key] = value
    set_seconds(message.elapsed, run.timing.get(system, 0.0))


def _metrics(message: bench_pb2.SystemSummary) -> dict[str, float | None]:
    return {**message.metrics, **dict.fromkeys(message.undefined_metrics)}


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
                total_rows=_total_of(run, system),
            )
    return message


def _total_of(run: Run, system: str) -> int | None:
    """Return how many rows a system will have, which all of them together tell."""
    if run.total_rows is None:
        return None
    fixed = run.rows_of(0)
    per_example = run.rows_of(1) - fixed
    return run.rows_of((run.total_rows - fixed) // per_example if per_example else 0, system)


def event_to_proto(entry: Seen, message: bench_pb2.RunEvent, *, processed: bool = False) -> None:
    """Encode an event; progress, and what cannot be stored, has no sequence."""
    if isinstance(entry, Progressed):
        message.progress.CopyFrom(progress_to_proto(entry.run))
        return
    if isinstance(entry, Unstored):
        message.state_change.state = _STATES[entry.event.state]
        message.state_change.reason = entry.event.reason
        return
    message.sequence = entry.seq
    set_seconds(message.create_time, entry.time)
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
