"""Rows in the run's order, page by page."""

import base64
import binascii
from collections.abc import Generator
from contextlib import closing
from typing import Annotated, Any

import msgspec

from cbench_server.errors import InvalidInput
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowPage, RowQuery
from cbench_server.spec import Run
from cbench_server.storage import queries
from cbench_server.storage.connection import Connection
from cbench_server.storage.damage import missing
from cbench_server.storage.run_rows import find_run, read_systems, snapshot, whole_run

_Number = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class _Place(msgspec.Struct, array_like=True):
    """The last row of a page. A token is one of these, in base64."""

    run: _Number
    last_seq: _Number
    """The run's last seq when the first page was read."""
    system: _Number
    ordinal: Annotated[int, msgspec.Meta(ge=-1, lt=2**62)] = -1
    repeat: Annotated[int, msgspec.Meta(ge=-1, lt=2**62)] = -1
    seen: _Number = 0
    """Rows of the system read so far."""


_place_decoder = msgspec.msgpack.Decoder(_Place)


def read_rows(
    connection: Connection,
    run_id: str,
    query: RowQuery,
    token: str | None,
) -> RowPage:
    """Return the page of rows that starts after the one `token` names."""
    with snapshot(connection):
        return _read_rows(connection, run_id, query, token)


def _read_rows(connection: Connection, run_id: str, query: RowQuery, token: str | None) -> RowPage:
    head = find_run(connection, run_id)
    run = whole_run(connection, head)
    numbers = {name: row.number for name, row in read_systems(connection, head).items()}
    key = head.id
    wanted = [name for name in run.progress if query.system in ("", name)]
    order = [numbers[name] for name in wanted if name in numbers]
    place = _first_place(key, run, order) if token is None else _decode_token(token, key, order)
    counts = {
        numbers[name]: progress.failed if query.failed_only else progress.completed
        for name, progress in run.progress.items()
        if name in numbers and place is not None and place.last_seq == run.last_seq
    }
    rows: list[EvalRow] = []
    originals: list[dict[str, Any]] | None = [] if query.original else None
    packed: list[bytes | None] | None = [] if query.packed else None
    size = 0
    statement = connection.sql.READ_ROWS[query.failed_only, query.processed or query.packed]
    with (
        closing(
            _records(connection, run_id, statement, place, order, counts, run.last_seq)
        ) as records,
        closing(queries.Originals(connection, run_id, key)) as found,
    ):
        for record in records:
            if len(rows) >= query.limit or (rows and size >= query.max_bytes):
                return RowPage(rows, _encode_token(place), originals, packed)
            row, row_size = queries.checked_row(run_id, record)
            example = None
            if originals is not None or (row.processed is not None and row.carried):
                example, example_size = found.read(row.ordinal)
                queries.fill_carried(run_id, row, example)
                row_size += example_size
            if rows and row_size > query.max_bytes:  # It is a page of its own.
                return RowPage(rows, _encode_token(place), originals, packed)
            rows.append(row)
            size += row_size
            if originals is not None and example is not None:
                originals.append(example)
            if packed is not None:
                packed.append(record[-1])
    return RowPage(rows, None, originals, packed)


def _records(
    connection: Connection,
    run_id: str,
    statement: str,
    place: "_Place | None",
    order: list[int],
    counts: dict[int, int],
    last_seq: int,
) -> Generator[tuple[Any, ...], None, None]:
    """Yield the rows after a place, which moves on to each when the next is asked for.

    A row that its index no longer finds would go unnoticed, so the rows of
    each system are counted, as long as the run stands still.
    """
    if place is None:
        return
    for number in order[order.index(place.system) :]:
        if number != place.system:
            place.system, place.ordinal, place.repeat, place.seen = number, -1, -1, 0
        after = {
            "run": place.run,
            "system": number,
            "ordinal": place.ordinal,
            "repeat": place.repeat,
            "last_seq": last_seq,
        }
        with closing(connection.stream(statement, after)) as cursor:
            for record in cursor:
                yield record
                place.ordinal, place.repeat = record[5], record[6]
                place.seen += 1
        if place.seen < counts.get(number, 0):
            lost = counts[number] - place.seen
            raise missing(run_id, f"a row ({lost} of {counts[number]} of a system)")


def _first_place(key: int, run: Run, order: list[int]) -> _Place | None:
    return _Place(key, run.last_seq, order[0]) if order else None


def _encode_token(place: _Place | None) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(place)).decode()


def _decode_token(token: str, key: int, order: list[int]) -> _Place:
    try:
        data = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
        place = _place_decoder.decode(data)
    except (UnicodeEncodeError, binascii.Error, msgspec.MsgspecError):
        place = None
    if place is None or place.run != key or place.system not in order:
        raise InvalidInput(
            f'"{token[:60]}" is not a page token of these rows. Start without one, or pass on the '
            "token of the page before."
        )
    return place
