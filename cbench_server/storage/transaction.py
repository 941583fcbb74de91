"""Transaction of writes; used by the writer's thread only."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import msgspec

from cbench_server.errors import AlreadyExists, InvalidInput, UnknownRun, WrongState
from cbench_server.runs.digests import spec_digest
from cbench_server.runs.lifecycle import check_change
from cbench_server.runs.ownership import Claim
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import Run, RunState
from cbench_server.storage import codec, sums
from cbench_server.storage.codec import EncodedEvent
from cbench_server.storage.connection import Connection, Cursor
from cbench_server.storage.damage import SIGNS
from cbench_server.storage.identity import row_to_delete
from cbench_server.storage.queries import check_example, examples_owner, missing_example
from cbench_server.storage.run_rows import (
    RunHead,
    SystemRow,
    checked_head,
    find_run,
    read_record,
    read_systems,
)
from cbench_server.texts.plain import encode_fields

if TYPE_CHECKING:
    from cbench_server.storage.run_import import Batch, RunFile

_COPY_BYTES = 8_000_000

_FIXED = {"damage", "run_id", "spec", "create_time", "request_id", "progress", "last_seq"}
UPDATABLE = {field.name for field in fields(Run)} - _FIXED


@dataclass(slots=True)
class _OpenRun:
    head: RunHead
    stored_seq: int
    systems: dict[str, SystemRow]
    is_changed: bool = False


class Transaction:
    """A group of writes; `flush` stores their events and counters all at once.

    Events are taken to be new, and `flush` raises what the database calls a
    conflict if one is not. A `careful` transaction, which is slower, drops those.
    """

    def __init__(self, connection: Connection, *, careful: bool) -> None:
        self.connection = connection
        self._sql = connection.sql
        self._is_careful = careful
        self.checked: set[Claim] = set()
        """Claims that were found to stand."""
        self._runs: dict[str, _OpenRun] = {}
        self._values: list[Any] = []

    def create_run(
        self, run: Run, record: bytes, accepted: EncodedEvent, time: float
    ) -> str | None:
        """Insert a run and its first event, or name the run that the same request made."""
        digest = spec_digest(run.spec)
        if run.request_id:
            made = self._execute(self._sql.FIND_REQUEST, request_id=run.request_id).fetchone()
            theirs = checked_head(made) if made else None
            if theirs and theirs.spec_digest == digest:
                return theirs.run_id
            if theirs:
                raise AlreadyExists(
                    f'request id "{run.request_id}" made run "{theirs.run_id}", whose spec is '
                    "another. Choose a new request id."
                )
        head = RunHead(
            id=0,
            run_id=run.run_id,
            request_id=run.request_id or None,
            spec_digest=digest,
            state=str(run.state),
            create_time=float(run.create_time),
            end_time=None if run.end_time is None else float(run.end_time),
            last_seq=0,
            examples=0,
            spool_complete=False,
            deleted=False,
            pinned=False,
            systems=0,
            labels=len(run.spec.labels),
            record_sum=sums.record_sum(run.run_id, record),
            sum=sums.UNKNOWN,
        )
        self.insert_run(head, record, run.spec.labels)
        self.append(run.run_id, [accepted], {}, time)
        return None

    def check_open(self, run_id: str) -> None:
        """Refuse to add to a run that is over."""
        state = RunState(self._run(run_id).head.state)
        if state.is_final:
            raise WrongState(f'run "{run_id}" is {state}; nothing can be added to it.')

    def insert_run(self, head: RunHead, record: bytes, labels: Mapping[str, str]) -> None:
        """Insert a run's own row, which gets its id here, and its labels."""
        if self._execute(self._sql.FIND_RUN, run_id=head.run_id).fetchone():
            raise AlreadyExists(f'there is a run "{head.run_id}" already. Choose another id.')
        columns = msgspec.structs.asdict(head)
        del columns["id"]
        head.id = self.connection.insert_run({**columns, "record": record})
        for key, value in labels.items():
            total = sums.row_sum((head.id, key, value))
            self._execute(self._sql.INSERT_LABEL, run=head.id, key=key, value=value, sum=total)
        self._runs[head.run_id] = _OpenRun(head, 0, {}, is_changed=True)

    def append(
        self,
        run_id: str,
        events: Iterable[EncodedEvent],
        changes: Mapping[str, Any],
        time: float,
    ) -> tuple[int, int]:
        """Store events and changes of the run; return its last seq and how many were new."""
        run = self._run(run_id)
        before = run.head.last_seq
        for event in events:
            self._insert(run, event, time)
        if changes:
            if "state" in changes:
                check_change(run_id, RunState(run.head.state), changes["state"])
            self._change(run, changes)
        return run.head.last_seq, run.head.last_seq - before

    def _insert(self, run: _OpenRun, event: EncodedEvent, time: float) -> None:
        event.pack_body()
        is_row = event.kind == codec.ROW
        system = self._system(run, event.system) if is_row else None
        key = (system.number, event.ordinal, event.repeat) if system else (None, None, None)
        head = run.head
        seq = head.last_seq + 1
        body_sum = sums.body_sum(event.body)
        head_sum = sums.event_sum(
            head.id, seq, event.kind, time, key, event.failed, body_sum, event.head
        )
        columns = (head.id, seq, event.kind, time, *key, event.failed)
        values = (*columns, head_sum, body_sum, event.head, event.body)
        if not self._is_careful:
            self._values += values
        elif self.connection.execute(self._sql.INSERT_EVENT_IF_NEW, values).rowcount == 0:
            return
        head.last_seq = seq
        run.is_changed = True
        if system:
            system.completed += 1
            system.failed += event.failed
            system.reused += event.reused
            system.is_changed = True

    def _change(self, run: _OpenRun, changes: Mapping[str, Any]) -> None:
        head = run.head
        before = read_record(self.connection, head)
        changed = replace(before, **changes)
        record = codec.encode_run(changed)
        self._execute(self._sql.SET_RECORD, run=head.id, new_record=record)
        head.record_sum = sums.record_sum(head.run_id, record)
        head.state = str(changed.state)
        head.end_time = None if changed.end_time is None else float(changed.end_time)
        for name in changes.get("systems", ()):
            self._system(run, name)
        run.is_changed = True

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
        if not origin.head.spool_complete or run.head.examples:
            return False
        owner = self._owner(origin)
        total = sums.shared_sum(run.head.id, owner)
        self._execute(self._sql.INSERT_SHARED, run=run.head.id, owner=owner, sum=total)
        self._set_spooled(run, origin.head.examples, complete=True)
        return True

    def _owner(self, run: _OpenRun) -> int:
        return examples_owner(self.connection, run.head.run_id, run.head.id)

    def _set_spooled(self, run: _OpenRun, examples: int, *, complete: bool) -> None:
        run.head.examples = examples
        run.head.spool_complete = bool(run.head.spool_complete or complete)
        run.is_changed = True

    def copy_examples(self, source: str, run_id: str, start: int, limit: int) -> int:
        """Spool some examples of another run, as they are stored; return how many."""
        origin = self._run(source)
        parameters = {"run": self._owner(origin), "start": start}
        columns: list[tuple[Any, ...]] = []
        size = 0
        with closing(self.connection.stream(self._sql.READ_EXAMPLES, parameters)) as cursor:
            for row in cursor:
                check_example(source, row)
                _, ordinal, dataset, index, digest, tokens, _, body = row
                if ordinal != start + len(columns):
                    raise missing_example(source, start + len(columns))
                columns.append((ordinal, dataset, index, digest, tokens, body))
                size += len(body)
                if len(columns) >= limit or size >= _COPY_BYTES:
                    break
        if not columns and start < origin.head.examples:
            raise missing_example(source, start)
        self._insert_examples(self._run(run_id), columns, complete=False)
        return len(columns)

    def _insert_examples(
        self, run: _OpenRun, examples: Iterable[tuple[Any, ...]], *, complete: bool
    ) -> None:
        values: list[Any] = []
        for ordinal, dataset, index, digest, tokens, body in examples:
            total = sums.example_sum(run.head.id, ordinal, dataset, index, digest, tokens, body)
            values += (run.head.id, ordinal, dataset, index, digest, tokens, total, body)
        new = self.connection.insert_examples(values)
        self._set_spooled(run, run.head.examples + new, complete=complete)

    def begin_import(self, file: "RunFile") -> None:
        """Insert a run that is hidden until `finish_import`."""
        head = file.head()
        if self._execute(self._sql.FIND_RUN, run_id=head.run_id).fetchone():
            raise AlreadyExists(
                f'examples of run "{head.run_id}", which was deleted, are kept for a run that was '
                "rescored from it. Import this one under a new id (cbench import FILE --new-id), "
                "or delete that run."
            )
        self.insert_run(head, file.record, file.run.spec.labels)
        for name in dict.fromkeys(file.frame.systems):
            if name:
                self._system(self._runs[head.run_id], name)

    def import_batch(self, run_id: str, batch: "Batch") -> None:
        """Store examples and events of a hidden run."""
        run = self._hidden(run_id)
        self._insert_examples(run, batch.examples, complete=False)
        for time, event in batch.events:
            self._insert(run, event, time)

    def finish_import(self, file: "RunFile") -> None:
        """Show a run, all of which is stored."""
        run = self._hidden(file.run.run_id)
        head, frame = run.head, file.frame
        if (head.last_seq, head.examples) != (file.events, file.examples):
            raise InvalidInput(f'the file of run "{head.run_id}" holds a row or example twice.')
        if changes := file.changes():
            self._change(run, changes)
        self._set_spooled(run, frame.examples, complete=frame.spool_complete)
        if (
            frame.request_id
            and not self._execute(self._sql.FIND_REQUEST, request_id=frame.request_id).fetchone()
        ):
            head.request_id = frame.request_id
        head.deleted = False
        self._execute(self._sql.SHOW_RUN, run=head.id, new_request_id=head.request_id)

    def _hidden(self, run_id: str) -> _OpenRun:
        if run_id not in self._runs:
            row = self._execute(self._sql.LOCK_RUN, run_id=run_id).fetchone()
            if row is None:
                raise UnknownRun(run_id)
            head = checked_head(row)
            systems = read_systems(self.connection, head)
            self._runs[run_id] = _OpenRun(head, head.last_seq, systems)
        return self._runs[run_id]

    def pin(self, run_id: str, *, pinned: bool) -> None:
        """Keep retention from deleting the run, or let it."""
        run = self._run(run_id)
        run.head.pinned, run.is_changed = pinned, True

    def mark_deleted(self, run_id: str) -> int | None:
        """Hide a run, be it damaged or not, and return its key; None if there is none."""
        row = self._execute(self._sql.LOCK_RUN, run_id=run_id).fetchone()
        if row is None:
            return None
        row = row_to_delete(self.connection, run_id, row)
        head, total = RunHead(*row), sums.UNKNOWN
        head.deleted, head.request_id = True, None
        # What is being deleted is nobody's truth any more: it need not be named as damaged.
        with suppress(*SIGNS):
            total = head.seal()["new_sum"]
        self._execute(self._sql.HIDE_RUN, run=row[0], new_sum=total)
        self._runs.pop(run_id, None)
        return int(row[0])

    def flush(self) -> dict[str, int]:
        """Store events and counters; return the last seq of each run that has new events."""
        if self._values:
            self.connection.insert_events(self._values)
        advanced = {}
        for run_id, run in self._runs.items():
            for name, system in run.systems.items():
                if system.is_changed:
                    self._execute(
                        self._sql.SET_COUNTERS,
                        run=run.head.id,
                        system=system.number,
                        new_completed=system.completed,
                        new_failed=system.failed,
                        new_reused=system.reused,
                        new_sum=system.sum_in(run.head.id, name),
                    )
            if run.is_changed:
                self._execute(self._sql.SET_HEAD, **run.head.seal())
            if run.head.last_seq > run.stored_seq:
                advanced[run_id] = run.head.last_seq
        return advanced

    def _run(self, run_id: str) -> _OpenRun:
        """Read a run's row and counters, which are verified before others are written over them."""
        run = self._runs.get(run_id)
        if run is None:
            head = find_run(self.connection, run_id, to_write=True)
            systems = read_systems(self.connection, head)
            run = self._runs[run_id] = _OpenRun(head, head.last_seq, systems)
        return run

    def _system(self, run: _OpenRun, name: str) -> SystemRow:
        system = run.systems.get(name)
        if system is None:
            system = run.systems[name] = SystemRow(len(run.systems))
            self._execute(
                self._sql.INSERT_SYSTEM,
                run=run.head.id,
                number=system.number,
                name=name,
                completed=0,
                failed=0,
                reused=0,
                sum=system.sum_in(run.head.id, name),
            )
            run.head.systems += 1
            run.is_changed = True
        return system

    def _execute(self, statement: str, **parameters: Any) -> Cursor:
        return self.connection.execute(statement, parameters)
