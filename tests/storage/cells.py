"""Cells of a SQLite file: where on the disk the value of a column lies, so that it can be damaged.

https://www.sqlite.org/fileformat2.html is the layout that is read here. Only what lies in a
leaf page is found, not what continues in overflow pages.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_INTERIOR, _LEAF = 5, 13
_SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}


class Cell(NamedTuple):
    """One row in a leaf page."""

    rowid: int
    rowid_at: int
    columns: list[tuple[int, int]]
    """Offset in the file and length of each value."""
    types_at: list[int]
    """Offset of the byte that says the kind and length of each value."""


def columns_of(path: Path, table: str) -> list[str]:
    """Return the names of a table's columns, in order."""
    connection = sqlite3.connect(path)
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    connection.close()
    return names


def cells_of(path: Path, table: str) -> Iterator[Cell]:
    """Yield the rows of a table in a file whose write-ahead log is empty."""
    connection = sqlite3.connect(path)
    (root,) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
    ).fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    yield from _walk(path.read_bytes(), root, size)


def _walk(data: bytes, number: int, size: int) -> Iterator[Cell]:
    start = (number - 1) * size
    header = start + (100 if number == 1 else 0)
    kind = data[header]
    count = int.from_bytes(data[header + 3 : header + 5], "big")
    pointers = header + (12 if kind == _INTERIOR else 8)
    cells = [
        start + int.from_bytes(data[pointers + 2 * each : pointers + 2 * each + 2], "big")
        for each in range(count)
    ]
    if kind == _INTERIOR:
        children = [int.from_bytes(data[cell : cell + 4], "big") for cell in cells]
        children.append(int.from_bytes(data[header + 8 : header + 12], "big"))
        for child in children:
            yield from _walk(data, child, size)
        return
    assert kind == _LEAF
    for cell in cells:
        yield _cell(data, cell, start + size)


def _cell(data: bytes, at: int, end: int) -> Cell:
    _, at = _varint(data, at)
    rowid_at = at
    rowid, at = _varint(data, at)
    length, place = _varint(data, at)
    body = at + length
    columns, types_at = [], []
    while place < at + length:
        types_at.append(place)
        kind, place = _varint(data, place)
        size = _SIZES[kind] if kind in _SIZES else (kind - 12) // 2
        columns.append((body, max(0, min(size, end - body))))
        body += size
    return Cell(rowid, rowid_at, columns, types_at)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = data[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | data[at], at + 1


def flip(path: Path, offset: int, bit: int) -> None:
    """Change one bit of a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))
