"""Opening of the store that the settings name: a file under home, or a database elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.storage.sql_store import SqlStore

if TYPE_CHECKING:
    from cbench_server.storage.connection import Database

LEASE_SECONDS = 30.0


def is_address(text: str) -> bool:
    """Tell whether a store is told by an address, and not by where its file is."""
    return "://" in text


def database_at(home: Path, address: str = "") -> "Database":
    """Return the database of a store, without opening it."""
    if not address:
        from cbench_server.storage.database import SqliteDatabase

        return SqliteDatabase(home / "cbench.db")
    from cbench_server.storage.postgres.address import read_address

    place = read_address(address)
    from cbench_server.storage.postgres.database import PostgresDatabase

    return PostgresDatabase(place)


def open_store(
    home: Path, address: str = "", *, max_bytes: int = 0, lease_seconds: float = LEASE_SECONDS
) -> SqlStore:
    """Open the store at an address, that in `home` where there is none; blocks for a moment.

    Beyond `max_bytes` it takes no more runs, examples and rows; 0 sets no limit.

    Raises `StoreError` or `InvalidInput`, saying what to do.
    """
    # Imported where it is asked for, so that neither database pays for the other.
    if not address:
        from cbench_server.storage.sqlite import SqliteStore

        return SqliteStore.open(home, max_bytes=max_bytes)
    from cbench_server.storage.postgres.address import read_address

    place = read_address(address)
    from cbench_server.storage.postgres.store import PostgresStore

    return PostgresStore.open(place, max_bytes=max_bytes, lease_seconds=lease_seconds)
