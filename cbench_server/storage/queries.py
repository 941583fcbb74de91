"""Queries for runs, events and examples. Every function runs on a reader thread.

A cursor is read to its end or closed before a function returns: a transaction
left open would keep the write-ahead log from being emptied.
"""

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from struct import error as StructError  # noqa: N812 - a class that is named like a value
from typing import Any

import msgspec

from cbench_server.errors import StoreCorrupt, UnknownRun
from cbench_server.events import RowScored, Stored
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowKey, SpooledExample
from cbench_server.spec import Run, RunState, SystemProgress
from cbench_server.storage import codec, run_list
from cbench_server.storage import sqlite_statements as sql

# What a flipped byte can lead to: another value, another type, or nothing that decodes.
_SIGNS_OF_DAMAGE = (ValueError, TypeError, AttributeError, StructError, msgspec.MsgspecError)

_MAX_SEQ = 2**62
_EXAMPLE_PAGE_BYTES = 8_000_000
# Examples that are passed over rather than looked up again.
_SKIPPED = 16


def find_run(connection: sqlite3.Connection, run_id: str) -> tuple[int, int]:
    """Return a run's key and last seq, or raise `UnknownRun`."""
    row = connection.execute(sql.FIND_RUN, {"run_id": run_id}).fetchone()
    if row is None:
        raise UnknownRun(run_id)
    return row[0], row[1]


def get_run(connection: sqlite3.Connection, run_id: str) -> Run:
    """Return a run with its progress."""
    with _snapshot(connection):
        row = connection.execute(sql.READ_RUN, {"run_id": run_id}).fetchone()
        if row is None:
            raise UnknownRun(run_id)
        return _run(connection, row)


def find_request(connection: sqlite3.Connection, request_id: str) -> Run | None:
    """Return the run that a request made, if any."""
    row = connection.execute(sql.FIND_REQUEST, {"request_id": request_id}).fetchone()
    return None if row is None else get_run(connection, row[0])


def list_runs(
    connection: sqlite3.Connection,
    limit: int,
    before: str | None,
    states: Collection[RunState],
    labels: Mapping[str, str],
) -> list[Run]:
    """Return runs, newest first."""
    with _snapshot(connection):
        rows = connection.execute(*run_list.list_runs(limit, before, states, labels)).fetchall()
        return [_run(connection, row) for row in rows]


def expired_runs(connection: sqlite3.Connection, before: float) -> list[str]:
    """Return the ids of runs that retention or an interrupted deletion has marked."""
    rows = connection.execute(sql.EXPIRED_RUNS, {"before": before}).fetchall()
    return [run_id for (run_id,) in rows]


def checked_record(row: tuple[Any, ...]) -> Run:
    """Decode a run as it was last written, without its counters."""
    _, run_id, total, record, *_ = row
    try:
        if codec.record_sum(run_id, record) != total:
            raise ValueError("its checksum differs")
        return codec.decode_run(record)
    except _SIGNS_OF_DAMAGE as error:
        raise _damaged(f'the record of run "{run_id}"', error) from error


def _run(connection: sqlite3.Connection, row: tuple[Any, ...]) -> Run:
    run = checked_record(row)
    key, _, _, _, last_seq, examples, spool_complete = row
    counted = {
        name: SystemProgress(*counters)
        for _, name, *counters in connection.execute(sql.READ_SYSTEMS, {"run": key}).fetchall()
    }
    progress = {name: counted.pop(name, SystemProgress()) for name in run.systems} | counted
    total_rows = run.total_rows
    if total_rows is None and spool_complete:
        total_rows = examples * run.rows_per_example
    return replace(run, progress=progress, last_seq=last_seq, total_rows=total_rows)


def read_flags(connection: sqlite3.Connection, run_id: str) -> tuple[int, bool, bool]:
    """Return how many examples are spooled, whether all are, and whether to cancel."""
    row = connection.execute(sql.READ_FLAGS, {"run_id": run_id}).fetchone()
    if row is None:
        raise UnknownRun(run_id)
    return row[0], bool(row[1]), bool(row[2])


def read_events(
    connection: sqlite3.Connection,
    run_id: str,
    after: int,
    *,
    limit: int,
    max_bytes: int,
    rows: bool,
    processed: bool,
) -> list[Stored]:
    """Return events after a seq, verified and without gaps."""
    statement = sql.READ_EVENTS if processed else sql.READ_HEADS
    if not rows:
        statement = sql.READ_EVENTS_BUT_ROWS
    after = min(max(after, 0), _MAX_SEQ)
    found: list[Stored] = []
    size = 0
    with _snapshot(connection):
        key, last_seq = find_run(connection, run_id)
        with (
            closing(connection.execute(statement, {"run": key, "after": after})) as cursor,
            closing(Originals(connection, run_id, key)) as originals,
        ):
            for record in cursor:
                if len(found) >= limit or (found and size >= max_bytes):
                    break
                stored, event_size = _stored(run_id, record)
                # What comes before a gap is given; the next page starts at the gap and fails.
                if rows and stored.seq != after + len(found) + 1:
                    break
                event = stored.event
                if isinstance(event, RowScored) and event.row.processed and event.row.carried:
                    original, original_size = originals.read(event.row.ordinal)
                    fill_carried(event.row, original)
                    event_size += original_size
                found.append(stored)
                size += event_size
    if rows and not found and after < last_seq:
        raise StoreCorrupt(
            f'event {after + 1} of run "{run_id}" is missing from the store. Delete the run, '
            "or restore a copy of the store."
        )
    if found and found[-1].seq > last_seq:
        raise _damaged(f'the record of run "{run_id}"', ValueError("its last seq is wrong"))
    return found


def _stored(run_id: str, record: tuple[Any, ...]) -> tuple[Stored, int]:
    seq, kind, time = record[1:4]
    try:
        head, body = _checked_event(record)
        size = len(head) + len(body or b"")
        return Stored(seq, time, codec.decode_event(kind, head, body)), size
    except _SIGNS_OF_DAMAGE as error:
        raise _damaged(f'event {seq} of run "{run_id}"', error) from error


def checked_row(run_id: str, record: tuple[Any, ...]) -> tuple[EvalRow, int]:
    """Decode a row's event, verified, with its size in bytes."""
    try:
        head, body = _checked_event(record)
        return codec.decode_row(head, body), len(head) + len(body or b"")
    except _SIGNS_OF_DAMAGE as error:
        raise _damaged(f'event {record[1]} of run "{run_id}"', error) from error


def _checked_event(record: tuple[Any, ...]) -> tuple[bytes, codec.Buffer | None]:
    """Return the head and, if it was selected, the unpacked body; both checked."""
    run, seq, kind, time, system, ordinal, repeat, failed, head_sum, body_sum, head, *rest = record
    key = (system, ordinal, repeat)
    if codec.event_sum(run, seq, kind, time, key, failed, body_sum, head) != head_sum:
        raise ValueError("its checksum differs")
    body: bytes | None = rest[0] if rest else None
    if rest and codec.body_sum(body) != body_sum:
        raise ValueError("the checksum of its processed output differs")
    return head, None if body is None else codec.unpack(body)


def read_rows_at(connection: sqlite3.Connection, keys: Sequence[RowKey]) -> list[EvalRow | None]:
    """Return rows with their processed outputs."""
    numbers: dict[str, tuple[int, dict[str, int]] | None] = {}
    found: list[EvalRow | None] = []
    for key in keys:
        if key.run_id not in numbers:
            row = connection.execute(sql.FIND_RUN, {"run_id": key.run_id}).fetchone()
            numbers[key.run_id] = (row[0], system_numbers(connection, row[0])) if row else None
        found.append(_read_row(connection, key, numbers[key.run_id]))
    return found


def _read_row(
    connection: sqlite3.Connection, key: RowKey, run: tuple[int, dict[str, int]] | None
) -> EvalRow | None:
    if run is None or key.system not in run[1]:
        return None
    parameters = {
        "run": run[0],
        "system": run[1][key.system],
        "ordinal": key.ordinal,
        "repeat": key.repeat,
    }
    record = connection.execute(sql.READ_ROW, parameters).fetchone()
    if record is None:
        return None
    found, _ = checked_row(key.run_id, record)
    if found.processed is not None and found.carried:
        with closing(Originals(connection, key.run_id, run[0])) as originals:
            fill_carried(found, originals.read(key.ordinal)[0])
    return found


def example_digests(connection: sqlite3.Connection, run_id: str, limit: int) -> list[str]:
    """Return the digests of the first examples of a run."""
    row = connection.execute(sql.FIND_RUN, {"run_id": run_id}).fetchone()
    if row is None:
        return []
    parameters = {"run": examples_owner(connection, run_id, row[0]), "most": limit}
    return [digest for (digest,) in connection.execute(sql.READ_DIGESTS, parameters).fetchall()]


def read_completed(
    connection: sqlite3.Connection, run_id: str, system: str, start: int, stop: int
) -> set[tuple[int, int]]:
    """Return the (ordinal, repeat) of a system's rows in a range of ordinals."""
    key, _ = find_run(connection, run_id)
    number = system_numbers(connection, key).get(system)
    parameters = {"run": key, "system": number, "start": start, "stop": stop}
    return set(connection.execute(sql.READ_COMPLETED, parameters).fetchall())


def system_numbers(connection: sqlite3.Connection, key: int) -> dict[str, int]:
    """Return the numbers by which a run's rows know their systems."""
    rows = connection.execute(sql.READ_SYSTEMS, {"run": key}).fetchall()
    return {name: number for number, name, *_ in rows}


def examples_owner(connection: sqlite3.Connection, run_id: str, key: int) -> int:
    """Return the key of the run for which a run's examples were stored, mostly its own."""
    row = connection.execute(sql.FIND_OWNER, {"run": key}).fetchone()
    if row is None:
        return key
    owner, total = row
    if codec.shared_sum(key, owner) != total:
        error = ValueError("its checksum differs")
        raise _damaged(f'the note whose examples run "{run_id}" has', error)
    return int(owner)


def read_examples(
    connection: sqlite3.Connection, run_id: str, start: int, limit: int
) -> list[SpooledExample]:
    """Return spooled examples from an ordinal on, as many as a page may hold."""
    key, _ = find_run(connection, run_id)
    spooled, is_complete, _ = read_flags(connection, run_id)
    found: list[SpooledExample] = []
    size = 0
    parameters = {"run": examples_owner(connection, run_id, key), "start": start}
    with closing(connection.execute(sql.READ_EXAMPLES, parameters)) as cursor:
        for row in cursor:
            if len(found) >= limit or size >= _EXAMPLE_PAGE_BYTES:
                break
            example, example_size = checked_example(run_id, row)
            if example.ordinal != start + len(found):
                break
            found.append(example)
            size += example_size
    if not found and is_complete and start < spooled:
        raise missing_example(run_id, start)
    return found


def check_example(run_id: str, row: tuple[Any, ...]) -> None:
    """Verify the checksum of a spooled example."""
    run, ordinal, dataset, index, digest, tokens, total, body = row
    try:
        if codec.example_sum(run, ordinal, dataset, index, digest, tokens, body) != total:
            raise ValueError("its checksum differs")
    except _SIGNS_OF_DAMAGE as error:
        raise _damaged(f'example {ordinal} of run "{run_id}"', error) from error


def checked_example(run_id: str, row: tuple[Any, ...]) -> tuple[SpooledExample, int]:
    """Decode a spooled example, verified, with its size in bytes."""
    example, size = checked_body(run_id, row)
    _, ordinal, dataset, index, digest, tokens, _, _ = row
    counts = codec.decode_fields(tokens)
    return SpooledExample(ordinal, dataset, index, example, digest, counts), size


def checked_body(run_id: str, row: tuple[Any, ...]) -> tuple[dict[str, Any], int]:
    """Decode the fields of a spooled example, verified, with their size in bytes."""
    check_example(run_id, row)
    try:
        data = codec.unpack(row[-1])
        return codec.decode_fields(data), len(data)
    except _SIGNS_OF_DAMAGE as error:
        raise _damaged(f'example {row[1]} of run "{run_id}"', error) from error


class Originals:
    """Examples of a run by ordinal; those that follow one another are read by one statement."""

    def __init__(self, connection: sqlite3.Connection, run_id: str, key: int) -> None:
        self._connection = connection
        self._run_id = run_id
        self._key = key
        self._owner: int | None = None
        self._cursor: sqlite3.Cursor | None = None
        self._at = -1
        self._last: tuple[dict[str, Any], int] = ({}, 0)

    def read(self, ordinal: int) -> tuple[dict[str, Any], int]:
        """Return the example at an ordinal, with its size in bytes."""
        if ordinal == self._at:
            return self._last
        if self._cursor is None or not self._at < ordinal <= self._at + _SKIPPED:
            self.close()
            if self._owner is None:
                self._owner = examples_owner(self._connection, self._run_id, self._key)
            parameters = {"run": self._owner, "start": ordinal}
            self._cursor = self._connection.execute(sql.READ_EXAMPLES, parameters)
        for row in self._cursor:
            if row[1] >= ordinal:
                break
        else:
            row = None
        if row is None or row[1] != ordinal:
            raise missing_example(self._run_id, ordinal)
        self._at, self._last = ordinal, checked_body(self._run_id, row)
        return self._last

    def close(self) -> None:
        """End the statement, which would keep the write-ahead log from being emptied."""
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None


def fill_carried(row: EvalRow, original: dict[str, Any]) -> None:
    """Give a row's processed output the fields it has from the original."""
    if row.processed is not None:
        for name in row.carried:
            row.processed[name] = original[name]


def missing_example(run_id: str, ordinal: int) -> StoreCorrupt:
    """Say that an example which must be there is not."""
    return StoreCorrupt(
        f'example {ordinal} of run "{run_id}" is missing from the store. Delete the run, or '
        "restore a copy of the store."
    )


def _damaged(what: str, error: Exception) -> StoreCorrupt:
    return StoreCorrupt(
        f"{what} is damaged in the store ({error}). Delete the run, or restore a copy of the store."
    )


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
