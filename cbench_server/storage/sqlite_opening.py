"""Opening of a store: its file is made, brought up to date, or found fit to be read only."""

import os
from contextlib import closing
from pathlib import Path

from cbench_server.errors import StoreAway, StoreCorrupt
from cbench_server.storage.database import SQLITE_ERRORS, connect, explained
from cbench_server.storage.migrate import migrate, revision_of
from cbench_server.storage.sqlite_statements import HEAD_REVISION
from cbench_server.storage.wal import is_durable


def prepare(path: Path) -> str:
    """Make the file or migrate it; return why it can only be read, empty if it can be written.

    Raises StoreAway if it cannot be read either, or only by an older version, or if what is
    read might be gone when its disk is back.
    """
    with explained(path.parent):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with explained(path):
            # SQLite would make the file readable by others, and not object to a read-only one.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            with closing(connect(path)) as connection:
                migrate(connection, path)
    except StoreAway as error:
        with explained(path):
            is_on_disk = is_durable(path.with_name(f"{path.name}-wal"))
        if not is_on_disk:
            raise StoreAway(
                f"{path} is not opened: its disk has failed, and did not get the last of what it "
                "should have. Mount the disk again, or restart the machine; what was shown is kept."
            ) from error
        if not _is_readable(path):
            raise
        return str(error)
    return ""


def _is_readable(path: Path) -> bool:
    try:
        with closing(connect(path, read_only=True)) as connection:
            return revision_of(connection, path) == HEAD_REVISION
    except (*SQLITE_ERRORS, StoreCorrupt):
        return False
