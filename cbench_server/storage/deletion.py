"""Deletion of a hidden run, a bounded part at a time."""

import sqlite3
from contextlib import closing

from cbench_server.storage import sqlite_statements as sql
from cbench_server.storage.database import pragma

_ROWS, _BYTES = 500, 8_000_000


def delete_some(connection: sqlite3.Connection, key: int) -> int | None:
    """Delete a part of a hidden run; return the run to go on with, None at the end.

    Examples that other runs share stay until the last of those is deleted.
    """
    is_shared = _tells(connection, sql.IS_SHARED, key)
    parts = [(sql.EVENT_SIZES, sql.DELETE_EVENTS)]
    if not is_shared:
        parts.append((sql.EXAMPLE_SIZES, sql.DELETE_EXAMPLES))
    for sizes, deletion in parts:
        chosen: list[int] = []
        total = 0
        with closing(connection.execute(sizes, {"run": key})) as cursor:
            for position, size in cursor:
                chosen.append(position)
                total += size
                if len(chosen) >= _ROWS or total >= _BYTES:
                    break
        if chosen:
            connection.execute(deletion, {"run": key, "last": chosen[-1]})
            return key
    for statement in sql.DELETE_PARTS:
        connection.execute(statement, {"run": key})
    if is_shared:
        return None
    owner = connection.execute(sql.FIND_OWNER, {"run": key}).fetchone()
    for statement in sql.DELETE_RUN:
        connection.execute(statement, {"run": key})
    return owner[0] if owner and _is_left_over(connection, owner[0]) else None


def _is_left_over(connection: sqlite3.Connection, key: int) -> bool:
    """Whether a run was kept for the sake of others only, and they are gone."""
    found = connection.execute(sql.IS_DELETED, {"run": key}).fetchone()
    return bool(found and found[0]) and not _tells(connection, sql.IS_SHARED, key)


def _tells(connection: sqlite3.Connection, statement: str, key: int) -> bool:
    return bool(connection.execute(statement, {"run": key}).fetchone()[0])


def vacuum_some(connection: sqlite3.Connection, pages: int) -> bool:
    """Give free pages back to the file system; False once none is left."""
    before = pragma(connection, "freelist_count")
    connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
    return 0 < pragma(connection, "freelist_count") < before
