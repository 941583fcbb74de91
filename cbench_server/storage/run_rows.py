"""Runs as their tables hold them: heads, systems and labels, each verified when it is read."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from cbench_server.errors import DamagedRun, UnknownRun
from cbench_server.spec import Run, SystemProgress
from cbench_server.storage import codec, sums
from cbench_server.storage.connection import Connection
from cbench_server.storage.damage import DIFFERS, SIGNS, damaged, is_sum, missing
from cbench_server.storage.database import is_damage


# A Struct is made, and taken apart again, in a tenth of a dataclass's time.
class RunHead(msgspec.Struct):
    """All of a run's row but its record, in the order of the columns."""

    id: int
    run_id: str
    request_id: str | None
    spec_digest: str
    state: str
    create_time: float
    end_time: float | None
    last_seq: int
    examples: int
    spool_complete: bool
    deleted: bool
    pinned: bool
    systems: int
    labels: int
    record_sum: int
    sum: int

    def seal(self) -> dict[str, Any]:
        """Set the checksum to what the other columns give, and return what may have changed."""
        self.sum = head_sum(msgspec.structs.astuple(self))
        return {
            "run": self.id,
            "new_state": self.state,
            "new_end_time": self.end_time,
            "new_last_seq": self.last_seq,
            "new_examples": self.examples,
            "new_spool_complete": self.spool_complete,
            "new_pinned": self.pinned,
            "new_systems": self.systems,
            "new_record_sum": self.record_sum,
            "new_sum": self.sum,
        }


_SUM = RunHead.__struct_fields__.index("sum")


def head_sum(values: tuple[Any, ...]) -> int:
    """Return the checksum of a run's row, given all its columns but the record."""
    return sums.row_sum(values[:_SUM])


@dataclass(slots=True)
class SystemRow:
    """How far one system of a run has come."""

    number: int
    completed: int = 0
    failed: int = 0
    reused: int = 0
    is_changed: bool = False

    def sum_in(self, run: int, name: str) -> int:
        """Return the checksum of its row."""
        return sums.row_sum(
            (run, self.number, name, self.completed, self.failed, self.reused),
        )


def checked_head(values: tuple[Any, ...]) -> RunHead:
    """Make a head of the columns of a row, or raise `DamagedRun`."""
    try:
        is_whole = head_sum(values) == values[_SUM]
    except SIGNS as error:
        raise damaged(values[1], "the record", error) from error
    if not is_whole:
        raise damaged(values[1], "the record")
    return RunHead(*values)


def find_run(connection: Connection, run_id: str, *, to_write: bool = False) -> RunHead:
    """Return a run's head, or raise `UnknownRun` or `DamagedRun`.

    `to_write` keeps others from writing it until the transaction ends.
    """
    statement = connection.sql.LOCK_RUN if to_write else connection.sql.FIND_RUN
    row = connection.execute(statement, {"run_id": run_id}).fetchone()
    if row is None:
        raise UnknownRun(run_id)
    head = checked_head(row)
    if head.deleted:
        raise UnknownRun(run_id)
    return head


def get_run(connection: Connection, run_id: str) -> Run:
    """Return a run with its progress."""
    with snapshot(connection):
        return whole_run(connection, find_run(connection, run_id))


def find_request(connection: Connection, request_id: str) -> Run | None:
    """Return the run that a request made, if any."""
    with snapshot(connection):
        row = connection.execute(connection.sql.FIND_REQUEST, {"request_id": request_id}).fetchone()
        return None if row is None else whole_run(connection, checked_head(row))


def whole_run(connection: Connection, head: RunHead) -> Run:
    """Read what belongs to a head: the record, the counters and the labels."""
    run = read_record(connection, head)
    rows = read_systems(connection, head)
    read_labels(connection, head)
    counted = {
        name: SystemProgress(row.completed, row.failed, row.reused) for name, row in rows.items()
    }
    progress = {name: counted.pop(name, SystemProgress()) for name in run.systems} | counted
    total_rows = run.total_rows
    if total_rows is None and head.spool_complete:
        total_rows = run.rows_of(head.examples)
    return replace(run, progress=progress, last_seq=head.last_seq, total_rows=total_rows)


def read_record(connection: Connection, head: RunHead) -> Run:
    """Decode a run as it was last written, without its counters."""
    (record,) = connection.execute(connection.sql.READ_RECORD, {"run": head.id}).fetchone()
    try:
        if sums.record_sum(head.run_id, record) != head.record_sum:
            raise ValueError(DIFFERS)
        return codec.decode_run(record)
    except SIGNS as error:
        raise damaged(head.run_id, "the record", error) from error


def read_systems(connection: Connection, head: RunHead) -> dict[str, SystemRow]:
    """Return the counters of a run's systems by name.

    A row whose checksum differs is passed over: it may have strayed here from
    another run. If it was this one's, it is missed.
    """
    found: dict[str, SystemRow] = {}
    rows = connection.execute(connection.sql.READ_SYSTEMS, {"run": head.id}).fetchall()
    for _, number, name, *counters, total in rows:
        row = SystemRow(number, *counters)
        if is_sum(total, lambda row=row, name=name: row.sum_in(head.id, name)):
            found[name] = row
    if len(found) != head.systems:
        lost = missing if len(rows) < head.systems else damaged
        raise lost(head.run_id, "what is counted for a system")
    return found


def read_labels(connection: Connection, head: RunHead) -> dict[str, str]:
    """Return a run's labels, none of which is missing."""
    found: dict[str, str] = {}
    if not head.labels:
        return found
    rows = connection.execute(connection.sql.READ_LABELS, {"run": head.id}).fetchall()
    for _, key, value, total in rows:
        if is_sum(total, lambda key=key, value=value: sums.row_sum((head.id, key, value))):
            found[key] = value
    if len(found) != head.labels:
        lost = missing if len(rows) < head.labels else damaged
        raise lost(head.run_id, "a label")
    return found


def heads(connection: Connection, before: str | None = None) -> Iterator[RunHead | DamagedRun]:
    """Yield the heads of all runs, newest first, the hidden ones too; damaged ones as errors.

    Where a page of the file is damaged, the runs on it are told apart one by one.
    """
    parameters = {"before": before or connection.beyond_all_runs}
    seen: set[Any] = set()
    try:
        for row in connection.stream(connection.sql.LIST_RUNS, parameters):
            seen.add(row[1])
            yield _head_or_error(row)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        for (run_id,) in connection.execute(connection.sql.LIST_RUN_IDS, parameters).fetchall():
            if run_id not in seen:
                yield _head_by_name(connection, run_id)


def _head_by_name(connection: Connection, run_id: str) -> RunHead | DamagedRun:
    try:
        row = connection.execute(connection.sql.FIND_RUN, {"run_id": run_id}).fetchone()
    except (sqlite3.DatabaseError, UnicodeEncodeError) as error:
        return damaged(run_id, "the record", error)
    return missing(run_id, "the record") if row is None else _head_or_error(row)


def _head_or_error(row: tuple[Any, ...]) -> RunHead | DamagedRun:
    try:
        return checked_head(row)
    except DamagedRun as error:
        return error


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """See the store as it is now, whatever is written meanwhile."""
    connection.begin_reading()
    try:
        yield
    finally:
        connection.rollback()
