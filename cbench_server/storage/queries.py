"""Queries for events and examples. Every function runs on a reader thread.

A cursor is read to its end or closed before a function returns: a transaction
left open would keep the write-ahead log from being emptied.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from cbench_server.errors import DamagedRun, UnknownRun
from cbench_server.events import RowScored, Stored
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowKey, SpooledExample
from cbench_server.storage import codec, sums
from cbench_server.storage.connection import Connection, Cursor
from cbench_server.storage.damage import DIFFERS, SIGNS, damaged, is_sum, missing
from cbench_server.storage.run_rows import (
    RunHead,
    SystemRow,
    find_run,
    read_systems,
    snapshot,
)

_MAX_SEQ = 2**62
_EXAMPLE_PAGE_BYTES = 8_000_000
# Examples that are passed over rather than looked up again.
_SKIPPED = 16


def read_events(
    connection: Connection,
    run_id: str,
    after: int,
    *,
    limit: int,
    max_bytes: int,
    rows: bool,
    processed: bool,
) -> list[Stored]:
    """Return events after a seq, verified and without gaps."""
    statement = connection.sql.READ_EVENTS if processed else connection.sql.READ_HEADS
    if not rows:
        statement = connection.sql.READ_EVENTS_BUT_ROWS
    after = min(max(after, 0), _MAX_SEQ)
    found: list[Stored] = []
    size = 0
    with snapshot(connection):
        head = find_run(connection, run_id)
        parameters = {"run": head.id, "after": after, "last_seq": head.last_seq}
        with (
            closing(connection.stream(statement, parameters)) as cursor,
            closing(Originals(connection, run_id, head.id)) as originals,
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
                    fill_carried(run_id, event.row, original)
                    event_size += original_size
                if found and event_size > max_bytes:
                    break  # It is a page of its own.
                found.append(stored)
                size += event_size
    if rows and not found and after < head.last_seq:
        raise missing(run_id, f"event {after + 1}")
    return found


def _stored(run_id: str, record: tuple[Any, ...]) -> tuple[Stored, int]:
    seq, kind, time = record[1:4]
    try:
        head, body = checked_event(record)
        size = len(head) + len(body or b"")
        return Stored(seq, time, codec.decode_event(kind, head, body)), size
    except SIGNS as error:
        raise damaged(run_id, f"event {seq}", error) from error


def checked_row(run_id: str, record: tuple[Any, ...]) -> tuple[EvalRow, int]:
    """Decode a row's event, verified, with its size in bytes."""
    try:
        head, body = checked_event(record)
        return codec.decode_row(head, body), len(head) + len(body or b"")
    except SIGNS as error:
        raise damaged(run_id, f"event {record[1]}", error) from error


def checked_event(record: tuple[Any, ...]) -> tuple[bytes, codec.Buffer | None]:
    """Return the head and, if it was selected, the unpacked body; both checked."""
    run, seq, kind, time, system, ordinal, repeat, failed, head_sum, body_sum, head, *rest = record
    key = (system, ordinal, repeat)
    # The checksum takes nothing for zero.
    if (ordinal is None) is not (system is None) or (repeat is None) is not (system is None):
        raise ValueError("a part of its key is gone")
    if sums.event_sum(run, seq, kind, time, key, failed, body_sum, head) != head_sum:
        raise ValueError(DIFFERS)
    body: bytes | None = rest[0] if rest else None
    if rest and sums.body_sum(body) != body_sum:
        raise ValueError("the checksum of its processed output differs")
    return head, None if body is None else codec.unpack(body)


def read_rows_at(connection: Connection, keys: Sequence[RowKey]) -> list[EvalRow | None]:
    """Return rows with their processed outputs."""
    runs: dict[str, tuple[RunHead, dict[str, SystemRow]] | None] = {}
    found: list[EvalRow | None] = []
    with snapshot(connection):
        for key in keys:
            if key.run_id not in runs:
                try:
                    head = find_run(connection, key.run_id)
                    runs[key.run_id] = (head, read_systems(connection, head))
                except UnknownRun:
                    runs[key.run_id] = None
            found.append(_read_row(connection, key, runs[key.run_id]))
    return found


def _read_row(
    connection: Connection,
    key: RowKey,
    run: tuple[RunHead, dict[str, SystemRow]] | None,
) -> EvalRow | None:
    if run is None or key.system not in run[1]:
        return None
    head, systems = run
    parameters = {
        "run": head.id,
        "system": systems[key.system].number,
        "ordinal": key.ordinal,
        "repeat": key.repeat,
    }
    record = connection.execute(connection.sql.READ_ROW, parameters).fetchone()
    if record is None:
        return None
    found, _ = checked_row(key.run_id, record)
    if found.processed is not None and found.carried:
        with closing(Originals(connection, key.run_id, head.id)) as originals:
            fill_carried(key.run_id, found, originals.read(key.ordinal)[0])
    return found


def example_digests(connection: Connection, run_id: str, limit: int) -> list[str]:
    """Return the digests of the first examples of a run."""
    try:
        head = find_run(connection, run_id)
    except UnknownRun:
        return []
    parameters = {"run": examples_owner(connection, run_id, head.id), "most": limit}
    return [
        digest
        for (digest,) in connection.execute(connection.sql.READ_DIGESTS, parameters).fetchall()
    ]


def read_completed(
    connection: Connection, run_id: str, system: str, start: int, stop: int
) -> set[tuple[int, int]]:
    """Return the (ordinal, repeat) of a system's rows in a range of ordinals."""
    head = find_run(connection, run_id)
    row = read_systems(connection, head).get(system)
    number = None if row is None else row.number
    parameters = {"run": head.id, "system": number, "start": start, "stop": stop}
    return set(connection.execute(connection.sql.READ_COMPLETED, parameters).fetchall())


def examples_owner(connection: Connection, run_id: str, key: int) -> int:
    """Return the key of the run for which a run's examples were stored, mostly its own."""
    row = connection.execute(connection.sql.FIND_OWNER, {"run": key}).fetchone()
    if row is None:
        return key
    owner, total = row
    if not is_sum(total, lambda: sums.shared_sum(key, owner)):
        # A run with examples of its own has none of another's: the note has strayed here.
        if connection.execute(connection.sql.READ_DIGESTS, {"run": key, "most": 1}).fetchone():
            return key
        raise damaged(run_id, "the owner of the examples")
    return int(owner)


def read_examples(
    connection: Connection, run_id: str, start: int, limit: int
) -> list[SpooledExample]:
    """Return spooled examples from an ordinal on, as many as a page may hold."""
    found: list[SpooledExample] = []
    size = 0
    with snapshot(connection):
        head = find_run(connection, run_id)
        parameters = {"run": examples_owner(connection, run_id, head.id), "start": start}
        with closing(connection.stream(connection.sql.READ_EXAMPLES, parameters)) as cursor:
            for row in cursor:
                if len(found) >= limit or size >= _EXAMPLE_PAGE_BYTES:
                    break
                example, example_size = checked_example(run_id, row)
                if example.ordinal != start + len(found):
                    break
                found.append(example)
                size += example_size
    if not found and start < head.examples:
        raise missing_example(run_id, start)
    return found


def check_example(run_id: str, row: tuple[Any, ...]) -> None:
    """Verify the checksum of a spooled example."""
    run, ordinal, dataset, index, digest, tokens, total, body = row
    try:
        if sums.example_sum(run, ordinal, dataset, index, digest, tokens, body) != total:
            raise ValueError(DIFFERS)
    except SIGNS as error:
        raise damaged(run_id, f"example {ordinal}", error) from error


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
    except SIGNS as error:
        raise damaged(run_id, f"example {row[1]}", error) from error


class Originals:
    """Examples of a run by ordinal; those that follow one another are read by one statement."""

    def __init__(self, connection: Connection, run_id: str, key: int) -> None:
        self._connection = connection
        self._run_id = run_id
        self._key = key
        self._owner: int | None = None
        self._cursor: Cursor | None = None
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
            self._cursor = self._connection.stream(self._connection.sql.READ_EXAMPLES, parameters)
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


def fill_carried(run_id: str, row: EvalRow, original: dict[str, Any]) -> None:
    """Give a row's processed output the fields it has from the original."""
    if row.processed is not None:
        for name in row.carried:
            if name not in original:
                raise missing(run_id, f'field "{name}" of example {row.ordinal}')
            row.processed[name] = original[name]


def missing_example(run_id: str, ordinal: int) -> DamagedRun:
    """Say that an example which must be there is not."""
    return missing(run_id, f"example {ordinal}")
