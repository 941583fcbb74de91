"""Inspection of a store of either kind: every row, what belongs together, and a file's pages."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from cbench_server.errors import (
    CbenchError,
    DamagedRun,
    StoreAway,
    StoreError,
    StoreTooNew,
    UnknownRun,
    printable,
)
from cbench_server.events import RowScored
from cbench_server.storage import codec, intents, queries, run_export
from cbench_server.storage.connection import Connection, Database
from cbench_server.storage.cut_off import as_long_as_it_was, lengths
from cbench_server.storage.damage import missing
from cbench_server.storage.database import SqliteConnection, SqliteDatabase, connect
from cbench_server.storage.identity import without_row
from cbench_server.storage.leftovers import is_held
from cbench_server.storage.migrate import expected_parts, migrate, parts
from cbench_server.storage.opening import open_store
from cbench_server.storage.placed_rows import EVENTS, EXAMPLES, PlacedRows
from cbench_server.storage.retention import half_deleted
from cbench_server.storage.run_rows import (
    find_run,
    heads,
    read_systems,
    snapshot,
    whole_run,
)
from cbench_server.storage.uploads import UploadStore
from cbench_server.storage.wal import lost_commits

_MOST_COMPLAINTS = 20
# What a run says of how many it has, for tables whose rows are not numbered.
_COUNTED = {"run_labels": "labels", "run_systems": "systems"}
# And of how many there are of those that are.
_NUMBERED = {"events": "seq > runs.last_seq", "examples": "ordinal >= runs.examples"}
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
_NOTHING_LEFT = "Restore a copy of the store: no run can be read from what is left of it."
_AGAIN = "This is no damage. Look again once the store can be written: cbench doctor --deep"
_UPGRADE = "This need not be damage. The version that wrote it looks at it: cbench doctor --deep"
_RESTORE_BACKUP = "Look into the server's log; pg_amcheck checks its files (docs/postgresql.md)."


@dataclass
class Inspection:
    """What was looked at, for who wants to know that it was all."""

    runs: int = 0
    events: int = 0
    examples: int = 0
    uploads: int = 0

    def of_store(self, home: Path, address: str = "") -> Iterator[Damage]:
        """Yield all the damage of a store; it is only read, once it has our schema."""
        yield from self.of_database(address) if address else self.of_home(home)

    def of_database(self, address: str) -> Iterator[Damage]:
        """Yield the damage in a database elsewhere, whose pages its server checks itself."""
        with TemporaryDirectory() as folder:
            store = open_store(Path(folder), address)
            uploads = store.uploads(Path(folder), 0, 0)
            try:
                with closing(store.database.connect(read_only=True)) as connection:
                    yield from self._all_runs(connection, store.database)
                    yield from self._cut_off(connection, partial(_is_leased, connection))
                    yield from self._strays(connection, store.database)
                    yield from self._intents(connection, store.database)
                yield from self._uploads(uploads)
            except store.database.errors as error:
                yield Damage("store", str(store.database.explain(error)), _RESTORE_BACKUP)
            finally:
                uploads.close()
                store.shut()

    def of_home(self, home: Path) -> Iterator[Damage]:
        """Yield the damage in a file under `home`, and beside it."""
        path = home / "cbench.db"
        database = SqliteDatabase(path)
        known: tuple[type[Exception], ...] = (StoreError, *database.errors)
        # Before the file is opened: who closes it last empties the log.
        yield from self._log(path)
        yield from self._length(path)
        try:
            with as_long_as_it_was(path) as whole:
                with closing(connect(whole)) as connection:
                    migrate(connection, path)
                with closing(connect(whole, read_only=True)) as connection:
                    yield from self._pages(connection, path)
                    yield from self._schema(connection, path)
                    yield from self._all_runs(connection, database)
                    yield from self._cut_off(connection, partial(is_held, home))
                    yield from self._strays(connection, database)
                    yield from self._intents(connection, database)
        except known as error:
            what = error if isinstance(error, StoreError) else database.explain(error)
            yield Damage("store", str(what), self._advice(what, path))
        yield from self._uploads(UploadStore(home))

    def _advice(self, error: StoreError, path: Path) -> str:
        if isinstance(error, StoreAway):
            return _AGAIN
        if isinstance(error, StoreTooNew):
            return _UPGRADE
        try:
            with as_long_as_it_was(path) as whole, closing(connect(whole, read_only=True)) as left:
                left.execute("SELECT run_id FROM runs").fetchone()
        except SqliteDatabase.errors:
            return _NOTHING_LEFT
        return _RESTORE

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
        size, told = lengths(path)
        if size < told:
            message = f"{path} is cut off: {size:,} bytes of {told:,} are there"
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

    def _schema(self, connection: SqliteConnection, path: Path) -> Iterator[Damage]:
        """Compare tables, their columns, and indexes with those of a new file."""
        expected, found = expected_parts(), set(parts(connection))
        for part in dict.fromkeys(name for name, _ in expected):
            columns = [column for name, column in expected if name == part]
            missing = [column for column in columns if (part, column) not in found]
            if missing:
                named = "" if missing == columns else f"column {', '.join(missing)} of "
                yield Damage("store", f"{path} has no {named}{part}", _RESTORE)

    def _strays(self, connection: Connection, database: Database) -> Iterator[Damage]:
        """Rows that belong to no run, also those that are at one which has all its own."""
        for table in _PARTS_OF_RUNS:
            try:
                (count,) = connection.execute(
                    f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT id FROM runs)"
                ).fetchone()
                if name := _COUNTED.get(table):
                    (more,) = connection.execute(
                        "SELECT coalesce(sum(found - told), 0) FROM (SELECT count(*) AS found, "
                        f"{name} AS told FROM {table} JOIN runs ON id = run GROUP BY id, {name}) "
                        "AS of_runs WHERE found > told"
                    ).fetchone()
                    count += int(more)
                if beyond := _NUMBERED.get(table):
                    (more,) = connection.execute(
                        f"SELECT count(*) FROM runs JOIN {table} ON run = id AND {beyond}"
                    ).fetchone()
                    count += int(more)
            except sqlite3.DatabaseError:
                continue  # It has been named with its page.
            if count:
                message = f"{count:,} rows of the table {table} in {database.name} belong to no run"
                fix = "They harm no run; what lost them is named with it, or was deleted."
                yield Damage("store", message, fix)

    def _intents(self, connection: Connection, database: Database) -> Iterator[Damage]:
        if count := intents.count_damaged(connection):
            message = f"{count:,} rows of the table intents in {database.name} are damaged"
            fix = "They harm no run: what they asked of a daemon is not done. Ask again."
            yield Damage("store", message, fix)

    def _all_runs(self, connection: Connection, database: Database) -> Iterator[Damage]:
        with snapshot(connection):
            found = list(heads(connection))
        for head in found:
            self.runs += 1
            if isinstance(head, DamagedRun):
                yield self._told(connection, database, head)
            elif not head.deleted:
                try:
                    with snapshot(connection):
                        self._run(connection, head.run_id)
                except UnknownRun:
                    self.runs -= 1  # It was deleted a moment ago.
                except DamagedRun as error:
                    yield self._told(connection, database, error)
                except database.errors as error:
                    if not database.is_damage(error):
                        raise
                    cause = f'run "{head.run_id}" cannot be read'
                    yield self._told(connection, database, DamagedRun(head.run_id, cause, error))
        with snapshot(connection):
            gone = without_row(connection)
        for run_id in gone:
            yield self._told(connection, database, missing(run_id, "the row"))

    def _cut_off(self, connection: Connection, is_owned: Callable[[str], bool]) -> Iterator[Damage]:
        """Name the runs whose deletion or import nobody is at any more."""
        left = [run_id for run_id in half_deleted(connection) if not is_owned(run_id)]
        # One that had an owner when it was found may be done by now.
        for run_id in half_deleted(connection) if left else ():
            if run_id not in left:
                continue
            message = f'the deletion or import of run "{run_id}" was cut off'
            fix = "A daemon finishes it; so does: cbench runs prune"
            yield Damage("leftover", message, fix, is_certain=False)

    def _told(self, connection: Connection, database: Database, error: DamagedRun) -> Damage:
        name = printable(error.run_id)
        known: tuple[type[Exception], ...] = (CbenchError, *database.errors)
        try:
            with snapshot(connection):
                survey = run_export.survey(connection, name)
        except known as problem:
            return Damage(
                f"run {name}", f"{error.what}.", f"Nothing of it can be read ({problem})."
            )
        lost = "; ".join(survey.lost)
        message = f"{error.what}. Lost: {lost or 'nothing'}."
        fix = f"{survey.sentence}. Save them: cbench runs salvage {name} -o {name}.run"
        return Damage(f"run {name}", message, fix)

    def _run(self, connection: Connection, run_id: str) -> None:
        """Read every row of a run, and count what is counted."""
        head = find_run(connection, run_id)
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

    def _uploads(self, uploads: UploadStore) -> Iterator[Damage]:
        for digest in uploads.all():
            self.uploads += 1
            try:
                for _ in uploads.iterate(digest):
                    pass
            except (StoreError, OSError) as error:
                fix = "Runs that have read it keep their examples; upload it again for new ones."
                yield Damage("upload", str(error), fix)


def _is_leased(connection: Connection, run_id: str) -> bool:
    return (run_id,) in connection.execute(connection.sql.LEASED_RUNS).fetchall()
