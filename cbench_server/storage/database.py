"""SQLite: connections to the store file, and its errors in words a person can act on."""

import errno
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbench_server.errors import StoreAway, StoreCorrupt, StoreError, StoreFull
from cbench_server.storage import sqlite_statements
from cbench_server.storage.connection import Connection, Database
from cbench_server.storage.wal import OVER, UNDER_WAY, mark_of

BUSY_TIMEOUT = 60.0
_BUSY_RETRIES = 3
_VACUUM_PAGES = 2000

_UNWRITABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
}
_DAMAGED = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}

# Said of a file that cannot be written they would fail, some though they change nothing.
_TO_WRITE = (
    # Takes effect only while the file is empty, and before it turns to WAL.
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    # 16 MB between checkpoints: fewer syncs than the default, still a small file.
    "PRAGMA wal_autocheckpoint = 4000",
    "PRAGMA journal_size_limit = 67108864",
)
# The second opens the log, or fails.
_TO_READ = ("PRAGMA query_only = ON", "SELECT 1 FROM sqlite_master LIMIT 1")

# A flipped bit can make text that is none, which must not keep other rows from being read.
_text = partial(str, encoding="utf-8", errors="surrogateescape")

# A message of SQLite's that quotes a damaged name cannot be decoded.
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)


class SqliteConnection(sqlite3.Connection):
    """A `Connection` to the file; that one says what its methods do."""

    sql: Any = sqlite_statements
    # Sorts after every run id, and after what a flipped bit makes of one: SQLite puts bytes last.
    beyond_all_runs = b"\xff" * 8
    # A cursor reads on as it is asked for more.
    stream = sqlite3.Connection.execute
    mark: int | None = None
    """The open file that says whether a commit is under way; of a connection that writes."""
    doubt: threading.Event | None = None
    """Set while the disk may lack the last commit, though it said that it had it."""

    def begin_writing(self) -> None:
        for attempt in range(_BUSY_RETRIES):
            try:
                self.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or attempt == _BUSY_RETRIES - 1:
                    raise

    def begin_reading(self) -> None:
        self.execute("BEGIN")

    def commit(self) -> None:
        if self.mark is None or self.doubt is None:
            super().commit()
            return
        os.pwrite(self.mark, UNDER_WAY, 0)
        super().commit()
        try:
            os.pwrite(self.mark, OVER, 0)
        except OSError as error:
            if not _is_full(error):
                self.doubt.set()
                raise
        self.doubt.clear()

    def close(self) -> None:
        super().close()
        if self.mark is not None:
            os.close(self.mark)
            self.mark = None

    def insert_run(self, columns: dict[str, Any]) -> int:
        return self.execute(sqlite_statements.INSERT_RUN, columns).lastrowid or 0

    def insert_events(self, values: list[Any]) -> None:
        columns = sqlite_statements.EVENT_COLUMNS
        self._insert_many(sqlite_statements.INSERT_EVENTS, columns, values)

    def insert_examples(self, values: list[Any]) -> int:
        columns = sqlite_statements.EXAMPLE_COLUMNS
        return self._insert_many(sqlite_statements.INSERT_EXAMPLES, columns, values)

    def _insert_many(self, statements: Mapping[int, str], columns: int, values: list[Any]) -> int:
        """Insert lines of so many values each; return how many lines were new."""
        start = new = 0
        for count, statement in statements.items():
            width = count * columns
            while start + width <= len(values):
                new += self.execute(statement, values[start : start + width]).rowcount
                start += width
        return new

    def used_bytes(self) -> int:
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (self.pragma(name) for name in names)
        return (pages - free) * size

    def is_over(self, most: int) -> bool:
        return self.used_bytes() >= most

    def compact_some(self) -> bool:
        before = self.pragma("freelist_count")
        self.execute(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})").fetchall()
        return 0 < self.pragma("freelist_count") < before

    def stop_waiting(self) -> None:
        """Do nothing: a commit to a file ends by itself."""

    def empty_log(self) -> None:
        """Take what the write-ahead log holds into the file."""
        with suppress(sqlite3.Error):  # All is committed; the next to open the file does it.
            self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def pragma(self, name: str) -> int:
        """Return a number that SQLite tells of the file."""
        return int(self.execute(f"PRAGMA {name}").fetchone()[0])


class SqliteDatabase:
    """The `Database` in a file."""

    errors: tuple[type[Exception], ...] = (*SQLITE_ERRORS, OSError)
    conflicts: tuple[type[Exception], ...] = (sqlite3.IntegrityError,)

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self._doubt = threading.Event()

    def connect(self, *, read_only: bool = False) -> SqliteConnection:
        connection = connect(self.path, read_only=read_only)
        if not read_only:
            connection.doubt = self._doubt
            with suppress(OSError):  # Where nothing can be written, nothing is committed.
                how = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                connection.mark = os.open(mark_of(self.path), how, 0o600)
        return connection

    def check_reading(self) -> None:
        if self._doubt.is_set():
            raise StoreAway(
                f"{self.path} is not read any more: its disk has failed, and may not have got the "
                "last of what it should have. Mount the disk again, or restart the machine; what "
                "was shown is kept."
            )

    def explain(self, error: Exception) -> StoreError:
        return explain(error, self.path)

    def is_damage(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.DatabaseError) or is_damage(error)

    def may_be_of_one(self, error: Exception) -> bool:
        return is_damage(error)

    def is_passing(self, error: Exception) -> bool:
        return False

    def needs_another(self, error: Exception) -> bool:
        # SQLite opens a file that is read-only, and leaves it at that.
        is_known = isinstance(error, sqlite3.OperationalError)
        return is_known and _code(error) == sqlite3.SQLITE_READONLY

    def keeps_readers(self) -> bool:
        # SQLite would not write the file later while a connection of now is there, and what
        # another process writes may pass unseen by this one.
        return _is_writable(self.path)


def connect(path: Path, *, read_only: bool = False) -> SqliteConnection:
    """Open the file; every transaction is begun and ended by name.

    To be read it need not be writable, but then it must not have a log of its own.
    """
    try:
        return _connect(path, read_only=read_only)
    except sqlite3.OperationalError as error:
        if not read_only or _code(error) not in _UNWRITABLE or _has_log(path):
            raise
        return _connect_frozen(path)


def _connect_frozen(path: Path) -> SqliteConnection:
    # Otherwise SQLite wants to write its index of the log beside the file.
    frozen = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(
        frozen,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        factory=SqliteConnection,
    )
    connection.text_factory = _text
    return connection


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _has_log(path: Path) -> bool:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def _connect(path: Path, *, read_only: bool) -> SqliteConnection:
    connection = sqlite3.connect(
        path,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        factory=SqliteConnection,
    )
    connection.text_factory = _text
    try:
        for statement in _TO_READ if read_only else _TO_WRITE:
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn SQLite's errors inside the context into ours."""
    try:
        yield
    except (*SQLITE_ERRORS, OSError) as error:
        raise explain(error, path) from error


def explain(error: Exception, path: Path) -> StoreError:
    """Say what SQLite or the system met at `path`, and what to do about it."""
    if is_damage(error):
        return damaged(path, str(error))
    code = _code(error)
    if _is_full(error):
        return StoreFull(
            f"no space is left to write {path}; what could not be written is left out whole. "
            "Free some space."
        )
    if code in _UNWRITABLE or isinstance(error, OSError):
        return StoreAway(
            f"{path} cannot be written ({error}). Check its permissions, or set CBENCH_HOME "
            "to a directory that can be."
        )
    if code == sqlite3.SQLITE_BUSY:
        return StoreAway(f"{path} is kept locked by another process. End that one, or wait.")
    return StoreError(f"{path} could not be used: {error}.")


def _is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    # The second is said where there is no room for the index of the log.
    full = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
    return _extended_code(error) in full


def is_damage(error: Exception) -> bool:
    """Tell whether SQLite met something in the file that it did not write."""
    return _code(error) in _DAMAGED or isinstance(error, UnicodeDecodeError)


def _code(error: Exception) -> int:
    return _extended_code(error) & 0xFF


def _extended_code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", None) or 0


def damaged(path: Path, what: str) -> StoreCorrupt:
    """Say that a whole file is of no use."""
    return StoreCorrupt(
        f"{path} is damaged or is not a cbench store ({what}). Move it aside to start with an "
        "empty one; `cbench doctor` checks the set-up."
    )


if TYPE_CHECKING:
    _is_a_connection: type[Connection] = SqliteConnection
    _is_a_database: type[Database] = SqliteDatabase
