"""Inspection of a store: every page, every row, and what belongs together, each once."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from cbench_server.errors import CbenchError, DamagedRun, StoreError
from cbench_server.events import RowScored
from cbench_server.storage import codec, queries, run_export
from cbench_server.storage.damage import printable
from cbench_server.storage.database import (
    SQLITE_ERRORS,
    SqliteConnection,
    connect,
    explain,
)
from cbench_server.storage.migrate import migrate
from cbench_server.storage.placed_rows import EVENTS, EXAMPLES, PlacedRows
from cbench_server.storage.retention import half_deleted
from cbench_server.storage.run_rows import RunHead, heads, read_systems, whole_run
from cbench_server.storage.uploads import UploadStore
from cbench_server.storage.wal import lost_commits

_MOST_COMPLAINTS = 20
_PARTS_OF_RUNS = ("run_labels", "run_systems", "events", "examples", "shared_examples")


@dataclass(frozen=True)
class Damage:
    """One thing that is not what was written, and what can be done."""

    subject: str
    message: str
    fix: str
    is_certain: bool = True
    """False for what need not be damage."""


_RESTORE = "Restore a copy of the store, or save its runs one by one: cbench runs salvage RUN"


@dataclass
class Inspection:
    """What was looked at, for who wants to know that it was all."""

    runs: int = 0
    events: int = 0
    examples: int = 0
    uploads: int = 0

    def of_home(self, home: Path) -> Iterator[Damage]:
        """Yield all the damage under `home`; the store is only read, once it has our schema."""
        path = home / "cbench.db"
        # Before the file is opened: who closes it last empties the log.
        yield from self._log(path)
        yield from self._length(path)
        try:
            with closing(connect(path)) as connection:
                migrate(connection, path)
            with closing(connect(path, read_only=True)) as connection:
                yield from self._pages(connection, path)
                yield from self._all_runs(connection, path)
                yield from self._strays(connection, path)
        except (*SQLITE_ERRORS, StoreError) as error:
            what = explain(error, path) if isinstance(error, SQLITE_ERRORS) else error
            yield Damage("store", str(what), _RESTORE)
        yield from self._files(home)

    def _log(self, path: Path) -> Iterator[Damage]:
        log = path.with_name(f"{path.name}-wal")
        # Twice, since a daemon may be writing it.
        lost = min(lost_commits(log), lost_commits(log))
        fix = "Restore a copy of the store, if you have one and miss something."
        if lost > 1:
            message = f"{log} is damaged; {lost:,} commits from that place on are lost"
            yield Damage("write-ahead log", message, fix)
        elif lost:
            message = f"the last commit in {log} is damaged, or a power failure cut it off"
            yield Damage("write-ahead log", message, fix, is_certain=False)

    def _length(self, path: Path) -> Iterator[Damage]:
        with path.open("rb") as file:
            header = file.read(100)
        page_size = int.from_bytes(header[16:18], "big")
        page_size = 65536 if page_size == 1 else page_size
        pages = int.from_bytes(header[28:32], "big")
        size = path.stat().st_size
        if header[:15] == b"SQLite format 3" and page_size and size < pages * page_size:
            message = f"{path} is cut off: {size:,} bytes of {pages * page_size:,} are there"
            yield Damage("store", message, _RESTORE)

    def _pages(self, connection: SqliteConnection, path: Path) -> Iterator[Damage]:
        """Have SQLite check pages, the order of rows, and that indexes have what tables have."""
        try:
            found = connection.execute(f"PRAGMA integrity_check({_MOST_COMPLAINTS})").fetchall()
        except sqlite3.Error as error:
            found = [(str(error),)]
        for (complaint,) in found:
            if complaint != "ok":
                yield Damage("store", f"{path}: {' '.join(complaint.split())}", _RESTORE)
        try:
            (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM runs").fetchone()
            told = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'runs'")
            is_told = any(type(seq) is int and seq >= last for (seq,) in told.fetchall())
        except sqlite3.DatabaseError:
            return  # It has been named with its page.
        if last and not is_told:
            message = f"{path} does not know which run was its last"
            yield Damage("store", message, _RESTORE)

    def _strays(self, connection: SqliteConnection, path: Path) -> Iterator[Damage]:
        """Rows that belong to no run."""
        for table in _PARTS_OF_RUNS:
            try:
                (count,) = connection.execute(
                    f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT id FROM runs)"
                ).fetchone()
            except sqlite3.DatabaseError:
                continue  # It has been named with its page.
            if count:
                message = f"{count:,} rows of the table {table} in {path} belong to no run"
                fix = "They harm no run; what lost them is named with it, or was deleted."
                yield Damage("store", message, fix)

    def _all_runs(self, connection: SqliteConnection, path: Path) -> Iterator[Damage]:
        for head in list(heads(connection)):
            self.runs += 1
            if isinstance(head, DamagedRun):
                yield self._told(connection, head)
            elif not head.deleted:
                try:
                    self._run(connection, head)
                except DamagedRun as error:
                    yield self._told(connection, error)
                except sqlite3.DatabaseError as error:
                    cause = f'run "{head.run_id}" cannot be read'
                    yield self._told(connection, DamagedRun(head.run_id, cause, error))
        for run_id in half_deleted(connection):
            message = f'the deletion or import of run "{run_id}" was cut off'
            fix = "A daemon finishes it; so does: cbench runs prune"
            yield Damage("leftover", message, fix, is_certain=False)

    def _told(self, connection: SqliteConnection, error: DamagedRun) -> Damage:
        name = printable(error.run_id)
        try:
            survey = run_export.survey(connection, name)
        except (CbenchError, *SQLITE_ERRORS) as problem:
            return Damage(f"run {name}", str(error), f"Nothing of it can be read ({problem}).")
        lost = "; ".join(survey.lost)
        message = f"{error.what}. Lost: {lost or 'nothing'}."
        fix = f"{survey.sentence}. Save them: cbench runs salvage {name} -o {name}.run"
        return Damage(f"run {name}", message, fix)

    def _run(self, connection: SqliteConnection, head: RunHead) -> None:
        """Read every row of a run, and count what is counted."""
        whole_run(connection, head)
        systems = read_systems(connection, head)
        owner = queries.examples_owner(connection, head.run_id, head.id)
        for _ in PlacedRows(connection, EXAMPLES, owner, head.examples).all(head.run_id):
            self.examples += 1
        completed: Counter[str] = Counter()
        failed: Counter[str] = Counter()
        reused: Counter[str] = Counter()
        for row in PlacedRows(connection, EVENTS, head.id, head.last_seq + 1).all(head.run_id):
            self.events += 1
            event = codec.decode_event(row[2], row[10], None)
            if isinstance(event, RowScored):
                name = event.row.system
                completed[name] += 1
                failed[name] += event.row.failure is not None
                reused[name] += event.row.reused
                if name not in systems or systems[name].number != row[4]:
                    raise DamagedRun(head.run_id, f"event {row[1]} is of an unknown system")
        for name, told in systems.items():
            counted = (completed[name], failed[name], reused[name])
            if counted != (told.completed, told.failed, told.reused):
                raise DamagedRun(
                    head.run_id,
                    f'what is counted for system "{name}" of run "{head.run_id}" is not what is '
                    "stored",
                )

    def _files(self, home: Path) -> Iterator[Damage]:
        uploads = UploadStore(home)
        for path in sorted((home / "uploads").glob("*.examples")):
            self.uploads += 1
            try:
                for _ in uploads.iterate(path.stem):
                    pass
            except (StoreError, OSError) as error:
                fix = "Runs that have read it keep their examples; upload it again for new ones."
                yield Damage("upload", str(error), fix)
