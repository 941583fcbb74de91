"""One particular longest common subsequence of two texts: the one that walking back finds.

ROUGE's union of subsequences depends on which of several longest ones is taken, so a
faster algorithm has to take the same one.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import isqrt

_SHORT = 256
"""Rows that are all kept."""


def common_places(rows: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Return the places in `columns` of a longest common subsequence, the last one first.

    It is found by walking back from both ends of the usual table: along the
    diagonal where the words are equal, else up to the row before where the
    table grows at this column, else left. A row of the table is a number whose
    bits say where it grows; of all rows only every so many are kept, and those
    between them computed again on the way back.
    """
    grows_at = _masks(rows, columns)
    block = max(isqrt(len(rows)) + 1, _SHORT)
    marks = [0]
    for start in range(0, len(rows) - block, block):
        marks.append(_table(rows[start : start + block], marks[-1], grows_at, len(columns))[-1])
    places: list[int] = []
    column = len(columns)
    for start in reversed(range(0, len(rows), block)):
        part = rows[start : start + block]
        table = _table(part, marks[start // block], grows_at, len(columns))
        for word, growth in zip(reversed(part), reversed(table), strict=True):
            reachable = (growth | grows_at.get(word, 0)) & ((1 << column) - 1)
            column = reachable.bit_length()
            if not column:
                return places
            if columns[column - 1] == word:
                column -= 1
                places.append(column)
    return places


def _masks(rows: Sequence[str], columns: Sequence[str]) -> dict[str, int]:
    """Return for each word of both the places it has in `columns`, as bits."""
    shared = set(rows)
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, word in enumerate(columns):
        if word in shared:
            places[word].append(place)
    return {word: _bits(found) for word, found in places.items()}


def _bits(places: list[int]) -> int:
    if places[-1] < _SHORT:
        return sum([1 << place for place in places])
    filled = bytearray(places[-1] // 8 + 1)
    for place in places:
        filled[place // 8] |= 1 << place % 8
    return int.from_bytes(filled, "little")


def _table(rows: Sequence[str], before: int, grows_at: dict[str, int], width: int) -> list[int]:
    """Return the rows of the table that follow the row `before`, by Hyyrö's bit-parallel rule."""
    full = (1 << width) - 1
    table: list[int] = []
    row = full ^ before
    for word in rows:
        if mask := grows_at.get(word):
            met = row & mask
            row = ((row + met) | (row - met)) & full
        table.append(full ^ row)
    return table
