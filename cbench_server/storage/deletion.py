"""Deletion of a hidden run, a bounded part at a time."""

from contextlib import closing

from cbench_server.storage.connection import Connection

_ROWS, _BYTES = 500, 8_000_000


def delete_some(connection: Connection, key: int) -> int | None:
    """Delete a part of a hidden run; return the run to go on with, None at the end.

    Examples that other runs share stay until the last of those is deleted.
    """
    is_shared = _tells(connection, connection.sql.IS_SHARED, key)
    parts = [(connection.sql.EVENT_SIZES, connection.sql.DELETE_EVENTS)]
    if not is_shared:
        parts.append((connection.sql.EXAMPLE_SIZES, connection.sql.DELETE_EXAMPLES))
    for sizes, deletion in parts:
        chosen: list[int] = []
        total = 0
        with closing(connection.stream(sizes, {"run": key})) as cursor:
            for position, size in cursor:
                chosen.append(position)
                total += size
                if len(chosen) >= _ROWS or total >= _BYTES:
                    break
        if chosen:
            connection.execute(deletion, {"run": key, "last": chosen[-1]})
            return key
    for statement in connection.sql.DELETE_PARTS:
        connection.execute(statement, {"run": key})
    if is_shared:
        return None
    owner = connection.execute(connection.sql.FIND_OWNER, {"run": key}).fetchone()
    for statement in connection.sql.DELETE_RUN:
        connection.execute(statement, {"run": key})
    return owner[0] if owner and _is_left_over(connection, owner[0]) else None


def _is_left_over(connection: Connection, key: int) -> bool:
    """Whether a run was kept for the sake of others only, and they are gone."""
    found = connection.execute(connection.sql.IS_DELETED, {"run": key}).fetchone()
    return bool(found and found[0]) and not _tells(connection, connection.sql.IS_SHARED, key)


def _tells(connection: Connection, statement: str, key: int) -> bool:
    return bool(connection.execute(statement, {"run": key}).fetchone()[0])
