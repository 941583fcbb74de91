"""Pages of events as bytes, for those who watch a run.

Rows that follow one another have much in common. Copying a message is one call where setting
its fields is twenty, so a row without rare fields starts as a copy of what it shares with the
one before; all others are encoded field by field.
"""

from collections.abc import Iterable
from typing import Any

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.messages import convert as wire
from cbench_server.events import RowScored, Seen, Stored
from cbench_server.results import EvalRow
from cbench_server.rpc.fitting import fit
from cbench_server.rpc.runs import event_to_proto
from cbench_server.rpc.times import set_seconds


def encode_page(page: Iterable[Seen], *, processed: bool, max_bytes: int) -> bytes:
    """Return the bytes of an EvaluateResponse or a WatchRunResponse with these events.

    A page has many rows or a large one, which goes without what does not fit into `max_bytes`.
    """
    # Both are the same repeated field, so one message serves for both.
    message = bench_pb2.WatchRunResponse()
    key: tuple[Any, ...] = ()
    common: bench_pb2.RunEvent | None = None
    for entry in page:
        event = message.events.add()
        row = _plain_row(entry)
        if row is None or processed:
            event_to_proto(entry, event, processed=processed)
            continue
        assert isinstance(entry, Stored)
        now = (entry.time, row.system, row.dataset, row.primary_score, row.group, row.repeat)
        if common is None or now != key:
            key, common = now, _common_part(entry, row)
        event.CopyFrom(common)
        event.sequence = entry.seq
        _fill(event.row, row)
    data = message.SerializeToString()
    if len(data) <= max_bytes:
        return data
    fit([event.row for event in message.events if event.HasField("row")], max_bytes)
    return message.SerializeToString()


def _plain_row(entry: Seen) -> EvalRow | None:
    """Return the row of an event, if it has only what most rows have."""
    if not isinstance(entry, Stored) or not isinstance(entry.event, RowScored):
        return None
    row = entry.event.row
    has_more = (
        row.failure
        or row.metadata
        or row.usage
        or row.details
        or row.evaluator_failures
        or row.reused
        or row.reader_time
        or row.reader_usage
        or row.ingest_time
        or row.attempts != 1
        or row.stored_bytes is not None
        or row.context_only
        or row.not_applicable
        or row.finish_reason
        or row.marks
        or row.cost_usd
        or row.groups
        or row.traceparent
    )
    return None if has_more else row


def _common_part(entry: Stored, row: EvalRow) -> bench_pb2.RunEvent:
    message = bench_pb2.RunEvent()
    set_seconds(message.create_time, entry.time)
    common = message.row
    common.system = row.system
    common.dataset = row.dataset
    common.primary_score = row.primary_score
    common.group = row.group
    common.repeat = row.repeat
    common.attempts = row.attempts
    return message


def _fill(message: bench_pb2.EvalRow, row: EvalRow) -> None:
    wire.id_to_proto(row.example_id, message.example_id)
    message.index = row.index
    message.ordinal = row.ordinal
    scores = message.scores
    for name, score in row.scores.items():
        scores[name] = score
    message.input_tokens = row.input_tokens
    message.output_tokens = row.output_tokens
    set_seconds(message.latency, row.latency)
    set_seconds(message.queue_time, row.queue_time)
    set_seconds(message.scoring_time, row.scoring_time)
    if row.context_tokens_in is not None:
        message.context_tokens_in = row.context_tokens_in
    if row.context_tokens_out is not None:
        message.context_tokens_out = row.context_tokens_out
    if row.replica:
        message.replica = row.replica
    if row.handler_seconds is not None:
        set_seconds(message.handler_time, row.handler_seconds)
    message.calls_in_flight = row.calls_in_flight
    message.alone = row.alone
