"""Identity of damaged runs: which row of their table is whose, and which number its parts have.

The checksum of that row covers the number and the name, so it tells whether others than those
that are there were written. Where more of it is damaged, the run's events say whose they are.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace

import msgspec

from cbench_server.errors import DamagedRun, StoreCorrupt, UnknownRun, printable
from cbench_server.events import RunAccepted, RunFinished
from cbench_server.storage import codec, queries
from cbench_server.storage.connection import Connection
from cbench_server.storage.damage import SIGNS, is_sum
from cbench_server.storage.placed_rows import Row
from cbench_server.storage.run_rows import RunHead, checked_head, head_sum

_READ_ERRORS = (sqlite3.DatabaseError, UnicodeEncodeError)
_MAX_SEQ = 2**62


@dataclass(frozen=True)
class Identity:
    """A run as its row was written, as far as that can be told."""

    row: int
    """The number that the row has."""
    name: str
    """The name that it has, be it damaged."""
    head: RunHead
    """With the number that the run's events, examples and other parts have."""
    is_whole: bool
    """Whether the checksum holds, so that all of the head is what was written."""

    @property
    def place(self) -> tuple[int, str]:
        """The number and the name that the row has."""
        return self.row, self.name


def identify(connection: Connection, run_id: str) -> Identity:
    """Find a run, however damaged its row is; raise `UnknownRun`, or `StoreCorrupt` if in doubt.

    A row is that of the run which it was written for, or else of the one that it names now.
    """
    with suppress(*_READ_ERRORS, DamagedRun):
        if row := connection.execute(connection.sql.FIND_RUN, {"run_id": run_id}).fetchone():
            head = checked_head(row)
            return Identity(head.id, head.run_id, head, True)
    found, used = _all(connection)
    for each in found:
        if each.is_whole and each.head.run_id == run_id:
            return each
    for each in found:
        if each.name == run_id:
            return each if each.is_whole else _told_by_events(connection, each, found, used)
    return _lost(connection, run_id, found, used)


def row_to_delete(connection: Connection, run_id: str, row: Row) -> Row:
    """Return the row of a run, under whose number nothing of another run lies, or raise."""
    with suppress(DamagedRun):
        checked_head(row)
        return row
    _put_back(connection, run_id)
    row = connection.execute(connection.sql.FIND_RUN, {"run_id": run_id}).fetchone()
    if identify(connection, run_id).head.id != row[0]:
        raise StoreCorrupt(
            f'run "{run_id}" cannot be deleted: its row in the store is damaged, and what has its '
            "number is of another run. Save them (cbench doctor --deep says how), and restore a "
            "copy of the store."
        )
    return row


def _put_back(connection: Connection, run_id: str) -> None:
    """Give rows back the numbers and names with which their checksums hold.

    A name by which a run is asked for stays, where it is no other's. None is changed where one
    would take the place of a row of which that is not told, nor a number where the database keeps
    it because of what refers to it.
    """
    found, _ = _all(connection)
    names = {each.head.run_id for each in found if each.is_whole}
    places = {
        each.row: (
            each.head.id,
            each.name if each.name == run_id not in names else each.head.run_id,
        )
        for each in found
        if each.is_whole
    }
    kept = [each for each in found if places.get(each.row, each.place) == each.place]
    astray = {row: place for row, place in places.items() if row not in {each.row for each in kept}}
    taken = {part for each in kept for part in each.place}
    if taken & {part for place in astray.values() for part in place}:
        return
    is_renumbered = any(row != number for row, (number, _) in astray.items())
    if is_renumbered and not connection.sql.DEFER_REFERENCES:
        return
    for statement in connection.sql.DEFER_REFERENCES:
        connection.execute(statement)
    aside = {row: -row if is_renumbered else row for row in astray}
    for row, number in aside.items():
        parameters = {"run": row, "new_id": number, "new_run_id": f"-{row}"}
        connection.execute(connection.sql.RENUMBER_RUN, parameters)
    for row, (number, name) in astray.items():
        parameters = {"run": aside[row], "new_id": number, "new_run_id": name}
        connection.execute(connection.sql.RENUMBER_RUN, parameters)


def _all(connection: Connection) -> tuple[list[Identity], set[int]]:
    """Return every row of the table that can be read, and the numbers that are in use."""
    rows = _numbers(connection, connection.sql.RUN_NUMBERS)
    used = rows | _numbers(connection, connection.sql.USED_NUMBERS)
    return [_as_written(connection, row, used) for row in _rows_at(connection, sorted(rows))], used


def _numbers(connection: Connection, statements: Iterable[str]) -> set[int]:
    """Return what can be read of the numbers that rows have, of runs or of their parts."""
    found: set[int] = set()
    for statement in statements:
        with (
            suppress(sqlite3.DatabaseError),
            closing(connection.stream(statement, {})) as cursor,
        ):
            found.update(number for (number,) in cursor if type(number) is int)
    return found


def _rows_at(connection: Connection, numbers: Iterable[int]) -> Iterator[Row]:
    for number in numbers:
        with suppress(sqlite3.DatabaseError):
            yield from connection.execute(connection.sql.HEAD_BY_ID, {"run": number}).fetchall()


def _as_written(connection: Connection, row: Row, used: set[int]) -> Identity:
    """Put in place of a row's number and name those, if any, with which its checksum holds."""
    number, name, *others = row
    names = [name]
    with suppress(*SIGNS, sqlite3.DatabaseError):
        (record,) = connection.execute(connection.sql.READ_RECORD, {"run": number}).fetchone()
        names.append(codec.decode_run(record).run_id)
    for each in dict.fromkeys(names):
        for key in (number, *sorted(used)):
            values = (key, each, *others)
            if is_sum(row[-1], lambda values=values: head_sum(values)):
                return Identity(number, printable(name), RunHead(*values), True)
    return Identity(number, printable(name), RunHead(*row), False)


def _told_by_events(
    connection: Connection, doubtful: Identity, found: list[Identity], used: set[int]
) -> Identity:
    """Return a run with the number that its events have, where its row does not tell."""
    name, number = doubtful.name, doubtful.head.id
    others = [each for each in found if each.row != doubtful.row]
    names = {each.head.run_id if each.is_whole else each.name for each in others}
    taken = {each.head.id: each.head.run_id for each in others if each.is_whole}
    theirs = taken.get(number) or _named_by_events(connection, number)
    if theirs == name:
        return doubtful
    own = [
        each for each in used - set(taken) - {number} if _named_by_events(connection, each) == name
    ]
    if not own and theirs not in names and (theirs or not _is_silent(connection, others)):
        return doubtful
    if len(own) != 1:
        says = (
            f'is of run "{theirs}" (cbench runs salvage {theirs})' if theirs else "may be another's"
        )
        raise StoreCorrupt(
            f'it cannot be told what is of run "{name}": its row in the store is damaged, and what '
            f"has its number {says}. Restore a copy of the store."
        )
    return replace(doubtful, head=msgspec.structs.replace(doubtful.head, id=own[0]))


def _is_silent(connection: Connection, others: list[Identity]) -> bool:
    """Tell whether another row is damaged too, and no event says whose its number is."""
    return any(
        not each.is_whole and not _named_by_events(connection, each.head.id) for each in others
    )


def _named_by_events(connection: Connection, number: int) -> str:
    """Return the run that the events with a number are of; empty if they do not tell."""
    parameters = {"run": number, "after": 0, "last_seq": _MAX_SEQ}
    statement = connection.sql.READ_EVENTS_BUT_ROWS
    with (
        suppress(sqlite3.DatabaseError),
        closing(connection.stream(statement, parameters)) as cursor,
    ):
        for row in cursor:
            with suppress(*SIGNS):
                head, _ = queries.checked_event(row)
                event = codec.decode_event(row[2], head, None)
                if isinstance(event, RunAccepted | RunFinished):
                    return event.run.run_id
    return ""


def without_row(connection: Connection) -> list[str]:
    """Return the runs whose row is gone, and whose events still say whose they are."""
    found, used = _all(connection)
    known = {each.head.id for each in found}
    told = {_named_by_events(connection, number) for number in used - known}
    return sorted(
        told - {each.head.run_id for each in found} - {each.name for each in found} - {""}
    )


def _lost(connection: Connection, run_id: str, found: list[Identity], used: set[int]) -> Identity:
    """Return a run whose row is gone, by what the index by name or its events still know."""
    with suppress(*_READ_ERRORS):
        if row := connection.execute(connection.sql.RUN_KEY, {"run_id": run_id}).fetchone():
            return _told_by_events(connection, _without_row(run_id, row[0]), found, used)
    for number in sorted(used - {each.head.id for each in found}):
        if _named_by_events(connection, number) == run_id:
            return _without_row(run_id, number)
    raise UnknownRun(run_id)


def _without_row(run_id: str, number: int) -> Identity:
    head = RunHead(number, run_id, None, "", "", 0.0, None, 0, 0, False, False, False, 0, 0, 0, 0)
    return Identity(number, run_id, head, False)
