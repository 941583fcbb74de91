"""The store we ship: one SQLite file, one writing thread, a few reading ones."""

import time
from collections.abc import Callable
from pathlib import Path

from cbench_server.storage.database import SqliteDatabase
from cbench_server.storage.locks import RunLocks
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.sqlite_opening import prepare


class SqliteStore(SqlStore):
    """A store in `<home>/cbench.db`.

    It needs a local disk: NFS is not supported.
    """

    @classmethod
    def open(
        cls, home: Path, clock: Callable[[], float] = time.time, max_bytes: int = 0
    ) -> "SqliteStore":
        """Open the store in `home`, creating both if need be; blocks for some milliseconds.

        One that cannot be written is opened to be read, and says why in `unwritable`.
        Beyond `max_bytes` it takes no more runs, examples and rows; 0 sets no limit.

        Raises `StoreTooNew`, `StoreCorrupt` or `StoreError`, saying what to do.
        """
        path = home / "cbench.db"
        unwritable = prepare(path)
        store = cls(SqliteDatabase(path), RunLocks(home / "locks"), clock, max_bytes)
        store.unwritable = unwritable
        return store
