"""Tables before they are drawn, and their drawing as aligned text."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Grid:
    """A table: the first column holds names and is aligned left, as are those in `left`."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[int] = frozenset()
    title: str = ""
    """A line above the table, written by the report."""

    def is_left(self, column: int) -> bool:
        """Whether a column is text rather than numbers."""
        return column == 0 or column in self.left


def to_text(grid: Grid) -> str:
    """Draw with spaces and one rule; ends without a line break."""
    lines = [tuple(map(printable, line)) for line in (grid.header, *grid.rows)]
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    drawn = [_line(line, widths, grid) for line in lines]
    rule = "  ".join("-" * size for size in widths)
    return "\n".join([drawn[0], rule, *drawn[1:]])


def printable(text: str) -> str:
    """Make text from elsewhere safe for a terminal: one line, no control characters."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "�"
        for character in text
    )


def printable_lines(text: str) -> str:
    """Do as `printable`, and keep line breaks and tabs."""
    return "\n".join(
        "\t".join(printable(part) for part in line.split("\t")) for line in text.split("\n")
    )


def width(text: str) -> int:
    """Count the columns a terminal gives to a text: wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _line(cells: Sequence[str], widths: Sequence[int], grid: Grid) -> str:
    padded = []
    for column, (cell, size) in enumerate(zip(cells, widths, strict=True)):
        padding = " " * (size - width(cell))
        padded.append(cell + padding if grid.is_left(column) else padding + cell)
    return "  ".join(padded).rstrip()
