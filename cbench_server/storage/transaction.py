"""Transaction of writes; used by the writer's thread only."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Any

from cbench_server.errors import AlreadyExists, UnknownRun
from cbench_server.runs.digests import encode_fields, spec_digest
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import Run
from cbench_server.storage import codec
from cbench_server.storage import sqlite_statements as sql
from cbench_server.storage.codec import EncodedEvent
from cbench_server.storage.queries import (
    check_example,
    checked_record,
    examples_owner,
    missing_example,
)

_DELETE_ROWS, _DELETE_BYTES = 500, 8_000_000
_COPY_BYTES = 8_000_000

_FIXED = {"run_id", "spec", "create_time", "request_id", "progress", "last_seq"}
UPDATABLE = {field.name for field in fields(Run)} - _FIXED


@dataclass(slots=True)
class _System:
    number: int
    completed: int = 0
    failed: int = 0
    reused: int = 0
    is_changed: bool = False


@dataclass(slots=True)
class _OpenRun:
    key: int
    stored_seq: int
    last_seq: int
    examples: int
    systems: dict[str, _System]


class Transaction:
    """A group of writes; `flush` stores their events and counters all at once.

    Events are taken to be new, and `flush` raises sqlite3.IntegrityError if
    one is not. A `careful` transaction, which is slower, drops those.
    """

    def __init__(self, connection: sqlite3.Connection, *, careful: bool) -> None:
        self._connection = connection
        self._is_careful = careful
        self._runs: dict[str, _OpenRun] = {}
        self._values: list[Any] = []

    def create_run(
        self, run: Run, record: bytes, accepted: EncodedEvent, time: float
    ) -> str | None:
        """Insert a run and its first event, or name the run that the same request made."""
        digest = spec_digest(run.spec)
        if run.request_id:
            made = self._execute(sql.FIND_REQUEST, request_id=run.request_id).fetchone()
            if made and made[1] == digest:
                return str(made[0])
            if made:
                raise AlreadyExists(
                    f'request id "{run.request_id}" made run "{made[0]}", whose spec is another. '
                    "Choose a new request id."
                )
        if self._execute(sql.FIND_RUN_TO_DELETE, run_id=run.run_id).fetchone():
            raise AlreadyExists(f'there is a run "{run.run_id}" already. Choose another id.')
        cursor = self._execute(
            sql.INSERT_RUN,
            run_id=run.run_id,
            request_id=run.request_id or None,
            spec_digest=digest,
            state=str(run.state),
            create_time=run.create_time,
            end_time=run.end_time,
            last_seq=0,
            examples=0,
            spool_complete=False,
            cancel_requested=False,
            deleted=False,
            record_sum=codec.record_sum(run.run_id, record),
            record=record,
        )
        for key, value in run.spec.labels.items():
            self._execute(sql.INSERT_LABEL, run=cursor.lastrowid, key=key, value=value)
        self.append(run.run_id, [accepted], {}, time)
        return None

    def append(
        self,
        run_id: str,
        events: Iterable[EncodedEvent],
        changes: Mapping[str, Any],
        time: float,
    ) -> tuple[int, int]:
        """Store events and changes of the run; return its last seq and how many were new."""
        run = self._run(run_id)
        before = run.last_seq
        for event in events:
            self._insert(run, event, time)
        if changes:
            self._change(run_id, run, changes)
        return run.last_seq, run.last_seq - before

    def _insert(self, run: _OpenRun, event: EncodedEvent, time: float) -> None:
        event.pack_body()
        is_row = event.kind == codec.ROW
        system = self._system(run, event.system) if is_row else None
        key = (system.number, event.ordinal, event.repeat) if system else (None, None, None)
        seq = run.last_seq + 1
        body_sum = codec.body_sum(event.body)
        head_sum = codec.event_sum(
            run.key, seq, event.kind, time, key, event.failed, body_sum, event.head
        )
        columns = (run.key, seq, event.kind, time, *key, event.failed)
        values = (*columns, head_sum, body_sum, event.head, event.body)
        if not self._is_careful:
            self._values += values
        elif self._connection.execute(sql.INSERT_EVENT_IF_NEW, values).rowcount == 0:
            return
        run.last_seq = seq
        if system:
            system.completed += 1
            system.failed += event.failed
            system.reused += event.reused
            system.is_changed = True

    def _change(self, run_id: str, run: _OpenRun, changes: Mapping[str, Any]) -> None:
        row = self._execute(sql.READ_RUN, run_id=run_id).fetchone()
        changed = replace(checked_record(row), **changes)
        record = codec.encode_run(changed)
        self._execute(
            sql.SET_RECORD,
            run=run.key,
            new_record=record,
            new_sum=codec.record_sum(run_id, record),
            new_state=str(changed.state),
            new_end_time=changed.end_time,
        )
        for name in changes.get("systems", ()):
            self._system(run, name)
        if "state" in changes:
            self._execute(sql.SET_CANCEL, run=run.key, requested=False)

    def add_examples(
        self, run_id: str, examples: Sequence[SpooledExample], *, complete: bool
    ) -> None:
        """Spool examples; one whose ordinal is there already is dropped."""
        columns = [
            (
                each.ordinal,
                each.dataset,
                each.index,
                each.digest,
                encode_fields(each.field_tokens),
                each.packed or codec.pack_example(each),
            )
            for each in examples
        ]
        self._insert_examples(self._run(run_id), columns, complete=complete)

    def share_examples(self, source: str, run_id: str) -> bool:
        """Let a run have the examples of another; False if that has not got them all."""
        origin, run = self._run(source), self._run(run_id)
        examples, is_complete, _ = self._execute(sql.READ_FLAGS, run_id=source).fetchone()
        if not is_complete or run.examples:
            return False
        owner = self._owner(source, origin)
        total = codec.shared_sum(run.key, owner)
        self._execute(sql.INSERT_SHARED, run=run.key, owner=owner, sum=total)
        run.examples = examples
        self._execute(sql.SET_SPOOLED, run=run.key, new_examples=examples, complete=True)
        return True

    def _owner(self, run_id: str, run: _OpenRun) -> int:
        return examples_owner(self._connection, run_id, run.key)

    def copy_examples(self, source: str, run_id: str, start: int, limit: int) -> int:
        """Spool some examples of another run, as they are stored; return how many."""
        origin = self._run(source)
        parameters = {"run": self._owner(source, origin), "start": start}
        columns: list[tuple[Any, ...]] = []
        size = 0
        with closing(self._connection.execute(sql.READ_EXAMPLES, parameters)) as cursor:
            for row in cursor:
                check_example(source, row)
                _, ordinal, dataset, index, digest, tokens, _, body = row
                if ordinal != start + len(columns):
                    raise missing_example(source, start + len(columns))
                columns.append((ordinal, dataset, index, digest, tokens, body))
                size += len(body)
                if len(columns) >= limit or size >= _COPY_BYTES:
                    break
        if not columns and start < origin.examples:
            raise missing_example(source, start)
        self._insert_examples(self._run(run_id), columns, complete=False)
        return len(columns)

    def _insert_examples(
        self, run: _OpenRun, examples: Iterable[tuple[Any, ...]], *, complete: bool
    ) -> None:
        values: list[Any] = []
        for ordinal, dataset, index, digest, tokens, body in examples:
            total = codec.example_sum(run.key, ordinal, dataset, index, digest, tokens, body)
            values += (run.key, ordinal, dataset, index, digest, tokens, total, body)
        run.examples += self._insert_many(sql.INSERT_EXAMPLES, sql.EXAMPLE_COLUMNS, values)
        self._execute(sql.SET_SPOOLED, run=run.key, new_examples=run.examples, complete=complete)

    def request_cancel(self, run_id: str) -> None:
        """Note that the run is to be cancelled."""
        self._execute(sql.SET_CANCEL, run=self._run(run_id).key, requested=True)

    def mark_deleted(self, run_id: str) -> int | None:
        """Hide a run and return its key; None if there is none."""
        row = self._execute(sql.FIND_RUN_TO_DELETE, run_id=run_id).fetchone()
        if row is None:
            return None
        self._execute(sql.MARK_DELETED, run=row[0])
        self._runs.pop(run_id, None)
        return int(row[0])

    def delete_some(self, key: int) -> int | None:
        """Delete a bounded part of a hidden run; return the run to go on with, None at the end.

        Examples that other runs share stay until the last of those is deleted.
        """
        is_shared = self._is_shared(key)
        parts = [(sql.EVENT_SIZES, sql.DELETE_EVENTS)]
        if not is_shared:
            parts.append((sql.EXAMPLE_SIZES, sql.DELETE_EXAMPLES))
        for sizes, deletion in parts:
            chosen: list[int] = []
            total = 0
            with closing(self._execute(sizes, run=key)) as cursor:
                for position, size in cursor:
                    chosen.append(position)
                    total += size
                    if len(chosen) >= _DELETE_ROWS or total >= _DELETE_BYTES:
                        break
            if chosen:
                self._execute(deletion, run=key, last=chosen[-1])
                return key
        for statement in sql.DELETE_PARTS:
            self._execute(statement, run=key)
        if is_shared:
            return None
        owner = self._execute(sql.FIND_OWNER, run=key).fetchone()
        for statement in sql.DELETE_RUN:
            self._execute(statement, run=key)
        return owner[0] if owner and self._is_left_over(owner[0]) else None

    def _is_shared(self, key: int) -> bool:
        return bool(self._execute(sql.IS_SHARED, run=key).fetchone()[0])

    def _is_left_over(self, key: int) -> bool:
        """Whether a run was kept for the sake of others only, and they are gone."""
        found = self._execute(sql.IS_DELETED, run=key).fetchone()
        return bool(found and found[0]) and not self._is_shared(key)

    def vacuum_some(self, pages: int) -> bool:
        """Give free pages back to the file system; False once none is left."""
        before = self._free_pages()
        self._connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
        return 0 < self._free_pages() < before

    def _free_pages(self) -> int:
        return int(self._connection.execute("PRAGMA freelist_count").fetchone()[0])

    def flush(self) -> dict[str, int]:
        """Store events and counters; return the last seq of each run that has new events."""
        self._insert_many(sql.INSERT_EVENTS, sql.EVENT_COLUMNS, self._values)
        advanced = {}
        for run_id, run in self._runs.items():
            if run.last_seq > run.stored_seq:
                self._execute(sql.SET_LAST_SEQ, run=run.key, new_last_seq=run.last_seq)
                advanced[run_id] = run.last_seq
            for system in run.systems.values():
                if system.is_changed:
                    self._execute(
                        sql.SET_COUNTERS,
                        run=run.key,
                        system=system.number,
                        new_completed=system.completed,
                        new_failed=system.failed,
                        new_reused=system.reused,
                    )
        return advanced

    def _insert_many(self, statements: Mapping[int, str], columns: int, values: list[Any]) -> int:
        """Insert lines of so many values each; return how many lines were new."""
        start = new = 0
        for count, statement in statements.items():
            width = count * columns
            while start + width <= len(values):
                new += self._connection.execute(statement, values[start : start + width]).rowcount
                start += width
        return new

    def _run(self, run_id: str) -> _OpenRun:
        run = self._runs.get(run_id)
        if run is None:
            row = self._execute(sql.FIND_RUN, run_id=run_id).fetchone()
            if row is None:
                raise UnknownRun(run_id)
            key, last_seq, examples = row
            systems = {
                name: _System(number, *counters)
                for number, name, *counters in self._execute(sql.READ_SYSTEMS, run=key)
            }
            run = self._runs[run_id] = _OpenRun(key, last_seq, last_seq, examples, systems)
        return run

    def _system(self, run: _OpenRun, name: str) -> _System:
        system = run.systems.get(name)
        if system is None:
            system = run.systems[name] = _System(len(run.systems))
            self._execute(
                sql.INSERT_SYSTEM,
                run=run.key,
                number=system.number,
                name=name,
                completed=0,
                failed=0,
                reused=0,
            )
        return system

    def _execute(self, statement: str, **parameters: Any) -> sqlite3.Cursor:
        return self._connection.execute(statement, parameters)
