"""Checksums of table rows, over values and not over a database's bytes.

Every row of every table has one that covers all its columns, the key of its run among them, so
that another database computes the same. docs/run-format.md writes the forms down.
"""

import struct
import zlib
from collections.abc import Iterable

Value = str | bytes | int | float | None

_EVENT_KEY = struct.Struct("<qqBdqqqBBI")
_EXAMPLE_KEY = struct.Struct("<qqq")
_SHARED_KEY = struct.Struct("<qq")
_NULL = b"\0"
_INTEGER = struct.Struct("<cq")
_REAL = struct.Struct("<cd")
_LENGTH = struct.Struct("<cQ")

UNKNOWN = -1
"""What stands for the checksum of a row that was found damaged; no row has it."""


def row_sum(values: Iterable[Value]) -> int:
    """Return the checksum of a row: each value with its kind, texts and bytes with their length."""
    parts: list[bytes] = []
    for value in values:
        kind = type(value)
        if kind is int or kind is bool:
            parts.append(_INTEGER.pack(b"i", value))
        elif kind is str:
            data = value.encode()  # type: ignore[union-attr]
            parts += (_LENGTH.pack(b"t", len(data)), data)
        elif value is None:
            parts.append(_NULL)
        elif kind is float:
            parts.append(_REAL.pack(b"r", value))
        else:
            parts += (_LENGTH.pack(b"b", len(value)), value)  # type: ignore[arg-type]
    return zlib.crc32(b"".join(parts))


# Events and examples are the hottest rows of the project, so their forms are fixed ones, which
# cost a third of the general one.
def event_sum(
    run: int,
    seq: int,
    kind: int,
    time: float,
    key: tuple[int | None, int | None, int | None],
    failed: bool,
    body_sum: int,
    head: bytes,
) -> int:
    """Return the checksum of all of an event; its body by the checksum that the body has."""
    system, ordinal, repeat = key
    is_row = system is not None
    columns = _EVENT_KEY.pack(
        run, seq, kind, time, system or 0, ordinal or 0, repeat or 0, is_row, failed, body_sum
    )
    return zlib.crc32(head, zlib.crc32(columns))


def body_sum(body: bytes | None) -> int:
    """Return the checksum of a packed body."""
    return 0 if body is None else zlib.crc32(body)


def example_sum(
    run: int, ordinal: int, dataset: str, index: int, digest: str, tokens: bytes, body: bytes
) -> int:
    """Return the checksum of a whole spooled example."""
    total = zlib.crc32(_EXAMPLE_KEY.pack(run, ordinal, index))
    for part in (dataset.encode(), digest.encode(), tokens, body):
        total = zlib.crc32(part, total)
    return total


def shared_sum(run: int, owner: int) -> int:
    """Return the checksum of the note whose examples a run has."""
    return zlib.crc32(_SHARED_KEY.pack(run, owner))


def record_sum(run_id: str, record: bytes) -> int:
    """Return the checksum of a run's record."""
    return zlib.crc32(record, zlib.crc32(run_id.encode()))
