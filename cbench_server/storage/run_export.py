"""Export of runs: the frames of all of a run, or of what damage has left of it."""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from cbench_server.errors import DamagedRun, printable
from cbench_server.events import RowScored, RunAccepted, RunFinished
from cbench_server.spec import Run, RunSpec, RunState
from cbench_server.storage import codec, queries, sums
from cbench_server.storage.connection import Connection
from cbench_server.storage.identity import identify
from cbench_server.storage.placed_rows import DAMAGE, EVENTS, EXAMPLES, Place, PlacedRows, Row
from cbench_server.storage.run_format import EventFrame, ExampleFrame, Frame, RunFrame
from cbench_server.storage.run_rows import (
    RunHead,
    find_run,
    read_labels,
    read_systems,
    snapshot,
    whole_run,
)

_NAMED = 20


def export_frames(connection: Connection, run_id: str) -> Generator[Frame, None, None]:
    """Yield all of a run as it is now, or raise `DamagedRun`."""
    with snapshot(connection):
        head = find_run(connection, run_id)
        run = whole_run(connection, head)
        (record,) = connection.execute(connection.sql.READ_RECORD, {"run": head.id}).fetchone()
        numbers = {row.number: name for name, row in read_systems(connection, head).items()}
        owner = queries.examples_owner(connection, run_id, head.id)
        yield _run_frame(head, run, record, numbers)
        for row in PlacedRows(connection, EXAMPLES, owner, head.examples).all(run_id):
            yield _example_frame(row)
        for row in PlacedRows(connection, EVENTS, head.id, head.last_seq + 1).all(run_id):
            yield _event_frame(row)


def _run_frame(
    head: RunHead, run: Run, record: bytes, numbers: dict[int, str], *, is_whole: bool = True
) -> RunFrame:
    return RunFrame(
        run_id=run.run_id,
        request_id=head.request_id or "",
        spec_digest=head.spec_digest,
        state=str(run.state),
        create_time=run.create_time,
        end_time=run.end_time,
        last_seq=head.last_seq,
        examples=head.examples,
        spool_complete=bool(head.spool_complete),
        pinned=bool(head.pinned),
        systems=[numbers.get(number, "") for number in range(max(numbers, default=-1) + 1)],
        labels=dict(run.spec.labels),
        record=record,
        is_whole=is_whole,
    )


def _example_frame(row: Row) -> ExampleFrame:
    _, ordinal, dataset, index, digest, tokens, _, body = row
    return ExampleFrame(ordinal, dataset, index, digest, tokens, body)


def _event_frame(row: Row) -> EventFrame:
    _, seq, kind, time, system, ordinal, repeat, failed, _, _, head, body = row
    return EventFrame(seq, kind, time, system, ordinal, repeat, bool(failed), head, body)


@dataclass
class Survey:
    """What can be read of a run, and what is lost."""

    head: RunHead
    run: Run
    record: bytes
    systems: dict[int, str]
    events: PlacedRows
    examples: PlacedRows
    lost: list[str]
    rows: int = 0
    """Rows that can be read."""

    @property
    def sentence(self) -> str:
        """What can be saved."""
        readable = [each.expected - len(each.lost) for each in (self.events, self.examples)]
        return (
            f"{readable[0]:,} of {self.events.expected:,} events ({self.rows:,} rows) and "
            f"{readable[1]:,} of {self.examples.expected:,} examples can be read"
        )

    def frames(self) -> Iterator[Frame]:
        """Yield what can be read."""
        is_whole = not self.lost
        yield _run_frame(self.head, self.run, self.record, self.systems, is_whole=is_whole)
        for row in self.examples.readable():
            yield _example_frame(row)
        for row in self.events.readable():
            yield _event_frame(row)
        yield from self.lost


def survey(connection: Connection, run_id: str) -> Survey:
    """Find out what can be read of a run, however damaged it is; raise `UnknownRun`."""
    found = identify(connection, run_id)
    head, is_sound = found.head, found.is_whole
    lost = [] if is_sound else ["the checksum of the run's row"]
    owner = head.id
    try:
        owner = queries.examples_owner(connection, run_id, head.id)
    except DAMAGE:
        lost.append("which run's examples it has")
    last_seq, count = head.last_seq, head.examples
    if not is_sound:
        last_seq = _last(connection, EVENTS, head.id, last_seq)
        count = _last(connection, EXAMPLES, owner, count - 1) + 1
    events = PlacedRows(connection, EVENTS, head.id, last_seq + 1)
    examples = PlacedRows(connection, EXAMPLES, owner, count)
    events.survey()
    examples.survey()
    told, systems, rows = _told_by_events(events)
    run, record = _record(connection, found.row, head, told, lost)
    lost += _names("event", events.lost)
    lost += _names("the output of event", events.without_output)
    lost += _names("example", examples.lost)
    lost += _parts(connection, head)
    if not is_sound:
        head = msgspec.structs.replace(
            head,
            run_id=run.run_id,
            request_id=None,
            last_seq=last_seq,
            examples=count,
            spool_complete=bool(count) and run.state.is_final,
            pinned=False,
        )
    return Survey(head, run, record, systems, events, examples, lost, rows)


def _last(connection: Connection, place: Place, run: int, told: int) -> int:
    """Return the last place of a run that is told of, or at which there is a row of it.

    One whose number alone is damaged may be anywhere.
    """
    try:
        statement = connection.sql.PLACES[place.table]
        for (at,) in connection.execute(statement, {"run": run}).fetchall():
            if at == told or PlacedRows(connection, place, run, 0).holds(at):
                return int(at)
    except sqlite3.DatabaseError:
        pass
    return -1


def _told_by_events(events: PlacedRows) -> tuple[Run | None, dict[int, str], int]:
    """Return the run as its last event of that kind has it, the systems, and how many rows."""
    told: Run | None = None
    systems: dict[int, str] = {}
    rows = 0
    for row in events.readable():
        event = codec.decode_event(row[2], row[10], None)
        if isinstance(event, RowScored):
            systems[row[4]] = event.row.system
            rows += 1
        elif isinstance(event, RunAccepted | RunFinished):
            told = event.run
    return told, systems, rows


def _record(
    connection: Connection, row: int, head: RunHead, told: Run | None, lost: list[str]
) -> tuple[Run, bytes]:
    """Return the run as it was last written, or else as its events have it."""
    with suppress(*DAMAGE):
        (record,) = connection.execute(connection.sql.READ_RECORD, {"run": row}).fetchone()
        if sums.record_sum(head.run_id, record) == head.record_sum:
            return codec.decode_run(record), record
    lost.append("the record, for which that of its last event stands in")
    run = told or Run(
        run_id=printable(head.run_id),
        spec=RunSpec((), ()),
        state=RunState.FAILED,
        create_time=0.0,
    )
    return run, codec.encode_run(run)


def _parts(connection: Connection, head: RunHead) -> Iterator[str]:
    """Yield which of a run's small rows are lost; all of them can be made again."""
    for read in (read_systems, read_labels):
        try:
            read(connection, head)
        except DAMAGE as error:
            what = error.what if isinstance(error, DamagedRun) else str(error)
            yield f"counters or labels, which are made again ({what})"


def _names(what: str, places: list[int]) -> Iterator[str]:
    for place in places[:_NAMED]:
        yield f"{what} {place}"
    if len(places) > _NAMED:
        yield f"{len(places) - _NAMED:,} more of the kind: {what}"
