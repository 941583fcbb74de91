"""Connection to PostgreSQL, which is made again when it was lost between two transactions."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.pq import TransactionStatus

from cbench_server.storage import postgresql_statements
from cbench_server.storage.connection import Connection, Cursor

_BEGIN_WRITING = "BEGIN; SELECT pg_current_xact_id()::text"
_COMMIT = f"{postgresql_statements.MARK_COMMIT}; COMMIT"
# Who reads keeps nobody from writing, and may wait for a slow client between two pages.
_BEGIN_READING = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
    "SET LOCAL idle_in_transaction_session_timeout = '10min'"
)
_EVENT_TYPES = (
    *("int4", "int8", "int4", "float8", "int4", "int8", "int4", "bool"),
    *("int8", "int8", "bytea", "bytea"),
)
# Fewer are inserted one by one: a COPY is three messages to and fro.
_COPIED = 4
_FIRST_FETCH, _MOST_FETCHED, _FETCHED_BYTES = 16, 512, 1_000_000
# How long a commit whose answer was lost is asked after.
_SETTLED_WITHIN_S = 600.0
_COUNTED_FOR_S = 10.0


class PostgresConnection:
    """A `Connection` to a database; that one says what its methods do."""

    sql: Any = postgresql_statements
    beyond_all_runs = "\U0010ffff"

    def __init__(self, connect: "Callable[[], psycopg.Connection[Any]]") -> None:
        self._connect = connect
        self.raw = connect()
        self.portals: set[str] = set()
        self._xid = ""
        self._writer = os.urandom(8).hex()
        self._number = 0
        self._closing = threading.Event()
        self._counted: tuple[int, int, float] | None = None

    @property
    def in_transaction(self) -> bool:
        return not self.raw.closed and self.raw.info.transaction_status != TransactionStatus.IDLE

    def begin_writing(self) -> None:
        cursor = self._begin(_BEGIN_WRITING)
        cursor.nextset()
        (self._xid,) = cursor.fetchone() or ("",)

    def begin_reading(self) -> None:
        self._begin(_BEGIN_READING)

    def _begin(self, statement: str) -> "psycopg.Cursor[Any]":
        self.portals = set()
        return self._again_if_lost(lambda: self.raw.execute(statement, prepare=False))

    def commit(self) -> None:
        self._number += 1
        try:
            cursor = psycopg.ClientCursor(self.raw).execute(_COMMIT, self._mark)
            cursor.nextset()
            done = cursor.statusmessage
        except psycopg.OperationalError as error:
            if not self.raw.closed:
                raise
            self._settle(error)
            return
        if done != "COMMIT":
            raise psycopg.OperationalError("the transaction was rolled back at its end")

    @property
    def _mark(self) -> dict[str, str]:
        """What this connection's last commit leaves in the database."""
        return {"writer": self._writer, "number": str(self._number)}

    def _settle(self, lost: psycopg.OperationalError) -> None:
        """Find out what became of a commit whose answer was lost; raise if it was not done.

        To do it again, not knowing, could store a change of state twice. Its number alone does not
        tell: a server that crashed, or a standby that took over, gives numbers again of which it
        has not heard. So a commit leaves a mark as well.
        """
        ends_at = time.monotonic() + _SETTLED_WITHIN_S
        while time.monotonic() < ends_at and not self._closing.is_set():
            with suppress(psycopg.OperationalError):
                self.raw = self._connect()
                try:
                    found = self.raw.execute("SELECT pg_xact_status(%s::xid8)", (self._xid,))
                    (status,) = found.fetchone() or (None,)
                except psycopg.DataError:
                    status = None  # A standby took over that has not seen it.
                if status == "committed" and self._is_marked():
                    return
                if status != "in progress":
                    break
            self._closing.wait(0.2)
        raise lost

    def _is_marked(self) -> bool:
        found = self.raw.execute(postgresql_statements.FIND_MARK, self._mark)
        return found.fetchone() is not None

    def rollback(self) -> None:
        if self.in_transaction:
            with suppress(psycopg.OperationalError):
                self.raw.execute("ROLLBACK")

    def execute(self, statement: str, parameters: Any = None, /) -> Cursor:
        def work() -> "psycopg.Cursor[Any]":
            return self.raw.execute(statement, parameters, binary=True)

        return work() if self.in_transaction else self._again_if_lost(work)

    def _again_if_lost(self, work: "Callable[[], psycopg.Cursor[Any]]") -> "psycopg.Cursor[Any]":
        """Do what begins nothing or reads, on a new connection where the old one is gone."""
        if not self.raw.closed:
            try:
                return work()
            except psycopg.OperationalError:
                if not self.raw.closed:
                    raise
        self.raw = self._connect()
        return work()

    def stream(self, statement: str, parameters: Any, /) -> "Portal":
        return Portal(self, statement, parameters)

    def insert_run(self, columns: dict[str, Any]) -> int:
        (key,) = self.execute(postgresql_statements.INSERT_RUN, columns).fetchone()
        return int(key)

    def insert_events(self, values: list[Any]) -> None:
        width = postgresql_statements.EVENT_COLUMNS
        rows = [values[at : at + width] for at in range(0, len(values), width)]
        if len(rows) < _COPIED:
            for row in rows:
                self.execute(postgresql_statements.INSERT_EVENT, row)
            return
        with self.raw.cursor().copy(postgresql_statements.COPY_EVENTS) as copy:
            copy.set_types(_EVENT_TYPES)
            for row in rows:
                copy.write_row(row)

    def insert_examples(self, values: list[Any]) -> int:
        width = postgresql_statements.EXAMPLE_COLUMNS
        rows = [values[at : at + width] for at in range(0, len(values), width)]
        if not rows:
            return 0
        cursor = self.raw.cursor()
        cursor.executemany(postgresql_statements.INSERT_EXAMPLE, rows)
        return cursor.rowcount

    def used_bytes(self) -> int:
        return sum(
            int(self.execute(each).fetchone()[0]) for each in postgresql_statements.LIVE_BYTES
        )

    def is_over(self, most: int) -> bool:
        """Tell by the size of the tables, and only where that is too much by what they hold.

        Tables do not shrink when runs are deleted: their space is used again.
        """
        (size,) = self.execute(postgresql_statements.TABLE_BYTES).fetchone()
        if size < most:
            return False
        used, size_then, counted_at = self._counted or (0, 0, 0.0)
        if used + size - size_then < most:
            return False
        if size > size_then or time.monotonic() > counted_at + _COUNTED_FOR_S:
            used = self.used_bytes()
            self._counted = used, size, time.monotonic()
        return used >= most

    def compact_some(self) -> bool:
        # Autovacuum does it; what was counted before a deletion says nothing any more.
        self._counted = None
        return False

    def empty_log(self) -> None:
        """Do nothing: PostgreSQL sees to its log."""

    def stop_waiting(self) -> None:
        """Have `commit` give up on a database that does not come back."""
        self._closing.set()

    def close(self) -> None:
        self.raw.close()


class Portal:
    """The rows of a statement, fetched some at a time; a `Cursor` of one transaction."""

    def __init__(self, connection: PostgresConnection, statement: str, parameters: Any) -> None:
        self._connection = connection
        self._open = connection.portals
        # Names are used again, and never prepared: what they stand for has other columns then.
        self._name = next(
            name for number in range(99) if (name := f"rows_{number}") not in self._open
        )
        declaration = f"DECLARE {self._name} NO SCROLL CURSOR FOR {statement}"
        connection.raw.execute(declaration, parameters, prepare=False)
        self._open.add(self._name)
        self._rows: list[Any] = []
        self._next = 0
        self._count = _FIRST_FETCH
        self._is_at_end = False

    @property
    def rowcount(self) -> int:
        """What is read changes no rows."""
        return 0

    def __iter__(self) -> Iterator[Any]:
        while (row := self.fetchone()) is not None:
            yield row

    def fetchone(self) -> Any:
        """Return the next row, None at the end."""
        if self._next >= len(self._rows) and not self._is_at_end:
            self._fetch()
        if self._next >= len(self._rows):
            return None
        self._next += 1
        return self._rows[self._next - 1]

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self)

    def _fetch(self) -> None:
        command = f"FETCH FORWARD {self._count} FROM {self._name}"
        found = self._connection.raw.execute(command, prepare=False, binary=True)
        self._rows, self._next = found.fetchall(), 0
        self._is_at_end = len(self._rows) < self._count
        size = sum(len(each) for row in self._rows for each in row if isinstance(each, bytes))
        if size < _FETCHED_BYTES and self._count < _MOST_FETCHED:
            self._count *= 2
        elif size > 2 * _FETCHED_BYTES:
            self._count = max(1, self._count // 2)

    def close(self) -> None:
        """End it, unless its transaction has ended by now."""
        if self._open is self._connection.portals and self._connection.in_transaction:
            with suppress(psycopg.OperationalError, psycopg.errors.InFailedSqlTransaction):
                self._connection.raw.execute(f"CLOSE {self._name}", prepare=False)
        self._open.discard(self._name)


if TYPE_CHECKING:
    _is_a_connection: type[Connection] = PostgresConnection
