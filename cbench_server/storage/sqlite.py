"""The store we ship: one SQLite file, one writing thread, a few reading ones."""

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from cbench_server.runs import failpoints
from cbench_server.storage.database import SqliteDatabase, connect, explained
from cbench_server.storage.locks import RunLocks
from cbench_server.storage.migrate import migrate
from cbench_server.storage.sql_store import SqlStore


class SqliteStore(SqlStore):
    """A store in `<home>/cbench.db`.

    It needs a local disk: NFS is not supported.
    """

    @classmethod
    def open(
        cls, home: Path, clock: Callable[[], float] = time.time, max_bytes: int = 0
    ) -> "SqliteStore":
        """Open the store in `home`, creating both if need be; blocks for some milliseconds.

        Beyond `max_bytes` it takes no more runs, examples and rows; 0 sets no limit.

        Raises `StoreTooNew`, `StoreCorrupt` or `StoreError`, saying what to do.
        """
        failpoints.arm()
        path = home / "cbench.db"
        locks = home / "locks"
        with explained(home):
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            locks.mkdir(mode=0o700, exist_ok=True)
        with explained(path):
            # SQLite would make the file readable by others, and not object to a read-only one.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            with closing(connect(path)) as connection:
                migrate(connection, path)
            return cls(SqliteDatabase(path), RunLocks(locks), clock, max_bytes)
