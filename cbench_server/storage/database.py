"""Connections to the store file, and its errors in words a person can act on."""

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from cbench_server.errors import StoreAway, StoreCorrupt, StoreError, StoreFull

P = ParamSpec("P")
T = TypeVar("T")

BUSY_TIMEOUT = 60.0
READERS = 2

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


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open the file; every transaction is begun and ended by name.

    To be read it need not be writable, but then it must not have a log of its own.
    """
    try:
        return _connect(path, read_only=read_only)
    except sqlite3.OperationalError as error:
        if not read_only or _code(error) not in _UNWRITABLE or _has_log(path):
            raise
        return _connect_frozen(path)


def _connect_frozen(path: Path) -> sqlite3.Connection:
    # Otherwise SQLite wants to write its index of the log beside the file.
    frozen = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(frozen, uri=True, isolation_level=None, check_same_thread=False)
    connection.text_factory = _text
    return connection


def _is_writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _has_log(path: Path) -> bool:
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
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
    if code == sqlite3.SQLITE_FULL or _is_full(error):
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
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_damage(error: Exception) -> bool:
    """Tell whether SQLite met something in the file that it did not write."""
    return _code(error) in _DAMAGED or isinstance(error, UnicodeDecodeError)


def _code(error: Exception) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def damaged(path: Path, what: str) -> StoreCorrupt:
    """Say that a whole file is of no use."""
    return StoreCorrupt(
        f"{path} is damaged or is not a cbench store ({what}). Move it aside to start with an "
        "empty one; `cbench doctor` checks the set-up."
    )


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file that are in use."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (pragma(connection, name) for name in names)
    return (pages - free) * size


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return a number that SQLite tells of the file."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def over_quota(path: Path, most: int) -> StoreFull:
    """Say that a store has all that it may."""
    return StoreFull(
        f"{path} has reached {most / (1 << 20):,.0f} MB, the max_store_mb of this daemon; what is "
        "stored is kept. Delete runs (cbench runs prune --help), or raise max_store_mb; then "
        "resume the run."
    )


class Readers:
    """A few threads with a connection each, for reads that must not hold up the loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self.pool = ThreadPoolExecutor(READERS, "cbench-read")

    def call(
        self,
        read: Callable[Concatenate[sqlite3.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run `read` on this pool thread's connection."""
        with explained(self._path):
            connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = connect(self._path, read_only=True)
                if not _is_writable(self._path):
                    # SQLite would not write it later while a connection of now is there, and what
                    # another process writes may pass unseen by this one.
                    with closing(connection):
                        return read(connection, *args, **kwargs)
                self._local.connection = connection
                self._connections.append(connection)
            return read(connection, *args, **kwargs)

    def close(self) -> None:
        """Wait for reads under way, then close the connections."""
        self.pool.shutdown()
        for connection in self._connections:
            connection.close()
