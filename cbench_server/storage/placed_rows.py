"""Placed rows: the events or examples of one run, each of which has its place in it.

A row is asked for by its key. Where the index or a page is damaged, what the index does not
give is looked for in the table itself, row by row. There it may have another run's number, which
its checksum tells.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cbench_server.errors import DamagedRun
from cbench_server.storage import codec, queries
from cbench_server.storage.connection import Connection
from cbench_server.storage.damage import SIGNS

Row = tuple[Any, ...]

_WINDOW = 200
_MOST_FAILURES = 20_000
DAMAGE = (*SIGNS, DamagedRun, sqlite3.Error)


@dataclass(frozen=True)
class Place:
    """Which table: how a row of it is called, where its place is, and how it is verified."""

    table: str
    what: str
    column: int
    first: int

    def whole(self, row: Row) -> Row:
        """Return a row that is what was written, or raise.

        An event whose output alone is damaged is returned without it.
        """
        if self.table == "examples":
            queries.checked_example("", row)
            return row
        try:
            head, body = queries.checked_event(row)
        except DAMAGE:
            head, body = queries.checked_event(row[:-1])
            row = (*row[:-1], None)
        codec.decode_event(row[2], head, body)
        return row


EVENTS = Place("events", "event", 1, 1)
EXAMPLES = Place("examples", "example", 1, 0)


class PlacedRows:
    """The rows of one run in one table, up to the place where they should end."""

    def __init__(self, connection: Connection, place: Place, run: int, stop: int) -> None:
        self._connection = connection
        self._place = place
        self._run = run
        self._stop = stop
        self._is_lost = bytearray(0)
        self._elsewhere: dict[int, int] = {}
        self.without_output: list[int] = []

    def all(self, run_id: str) -> Iterator[Row]:
        """Yield every row in order, or raise `DamagedRun` at the first that is not there."""
        for start in range(self._place.first, self._stop, _WINDOW):
            stop = min(start + _WINDOW, self._stop)
            found = dict(self._window(start, stop))
            for position in range(start, stop):
                name = f'{self._place.what} {position} of run "{run_id}"'
                if position not in found:
                    raise DamagedRun(run_id, f"{name} is missing from the store")
                try:
                    row = self._place.whole(found[position])
                except DAMAGE as error:
                    why = error.why if isinstance(error, DamagedRun) else error
                    raise DamagedRun(run_id, f"{name} is damaged in the store", why) from error
                if row is not found[position]:
                    raise DamagedRun(run_id, f"the output of {name} is damaged in the store")
                yield row

    def survey(self) -> None:
        """Find out what can be read, and where."""
        self._is_lost = bytearray(self._stop)
        for start in range(self._place.first, self._stop, _WINDOW):
            stop = min(start + _WINDOW, self._stop)
            found = self._readable(start, stop)
            for position in range(start, stop):
                if position not in found:
                    self._is_lost[position] = 1
                elif found[position][-1] is None and self._lost_its_output(found[position]):
                    self.without_output.append(position)
        if any(self._is_lost):
            self._search_table()

    def holds(self, position: int) -> bool:
        """Tell whether there is a row that was written for a place."""
        return position in self._readable(position, position + 1)

    def _lost_its_output(self, row: Row) -> bool:
        return self._place is EVENTS and row[9] != 0

    @property
    def lost(self) -> list[int]:
        """The places of rows that cannot be read, after a survey."""
        return [at for at in range(self._place.first, self._stop) if self._is_lost[at]]

    @property
    def expected(self) -> int:
        """How many rows there should be."""
        return max(0, self._stop - self._place.first)

    def readable(self) -> Iterator[Row]:
        """Yield in order what a survey has found."""
        block: dict[int, Row] = {}
        for start in range(self._place.first, self._stop, _WINDOW):
            stop = min(start + _WINDOW, self._stop)
            found = self._readable(start, stop)
            for position in range(start, stop):
                if position in self._elsewhere:
                    # Not by its number, which on a damaged page may lead nowhere.
                    if position not in block:
                        block = dict(self._wanted(self._elsewhere[position]))
                    yield block[position]
                elif not self._is_lost[position]:
                    yield found[position]

    def _readable(self, start: int, stop: int) -> dict[int, Row]:
        found = {}
        for position, row in self._window(start, stop):
            try:
                found[position] = self._place.whole(row)
            except DAMAGE:
                continue
        return found

    def _window(self, start: int, stop: int) -> Iterator[tuple[int, Row]]:
        """Yield rows by their place; where that fails for all of them, one by one."""
        try:
            rows = self._ask("window", run=self._run, start=start, stop=stop)
        except sqlite3.DatabaseError:
            rows = []
            for position in range(start, stop):
                try:
                    rows += self._ask("window", run=self._run, start=position, stop=position + 1)
                except sqlite3.DatabaseError:
                    continue
        for row in rows:
            yield row[self._place.column], row

    def _search_table(self) -> None:
        if (self._place.table, "last_rowid") not in self._connection.sql.PLACED_ROWS:
            return
        try:
            ((last,),) = self._ask("last_rowid")
        except sqlite3.DatabaseError:
            return
        start, failures = 1, 0
        while start <= (last or 0) and failures < _MOST_FAILURES:
            for at, _ in self._wanted(start):
                if self._is_lost[at]:
                    self._elsewhere[at] = start
                    self._is_lost[at] = 0
            start += _WINDOW
            try:
                # A row whose number is damaged may be anywhere.
                ((found,),) = self._ask("next_rowid", start=start)
            except sqlite3.DatabaseError:
                failures += 1
            else:
                start = (last or 0) + 1 if found is None else found

    def _wanted(self, start: int) -> Iterator[tuple[int, Row]]:
        """Yield the rows that are lost elsewhere in one block of the table, by their place."""
        for row in self._block(start, start + _WINDOW):
            at = row[1 + self._place.column]
            is_place = type(at) is int and 0 <= at < self._stop
            if is_place and (self._is_lost[at] or at in self._elsewhere):
                try:
                    yield at, self._whole_here(row)
                except DAMAGE:
                    continue

    def _whole_here(self, row: Row) -> Row:
        """Return a row that was written for this run, whichever it names now, or raise."""
        return self._place.whole((self._run, *row[2:]))

    def _block(self, start: int, stop: int) -> list[Row]:
        try:
            return self._ask("block", start=start, stop=stop)
        except sqlite3.DatabaseError:
            rows = []
            for rowid in range(start, stop):
                try:
                    rows += self._ask("by_rowid", rowid=rowid)
                except sqlite3.DatabaseError:
                    continue
            return rows

    def _ask(self, way: str, **parameters: Any) -> list[Row]:
        statement = self._connection.sql.PLACED_ROWS[self._place.table, way]
        return self._connection.execute(statement, parameters).fetchall()
