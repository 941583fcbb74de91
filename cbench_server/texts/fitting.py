"""Tables that fit: text columns are broken into lines, then columns go to further tables below."""

from collections.abc import Sequence
from dataclasses import replace

from cbench_server.texts.grid import Grid, printable, width

_GAP = 2
# A column of text is not made narrower than this, unless its words are shorter.
_NARROW = 24


def fitted(grid: Grid, columns: int) -> list[Grid]:
    """Return a table as one or more that are at most so many columns wide.

    Each of several begins with the first column, which says what a row is about.
    """
    lines = [tuple(map(printable, line)) for line in (grid.header, *grid.rows)]
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    if _total(widths) <= columns:
        return [grid]
    groups = _groups(_narrowed(grid, widths, columns), columns)
    return [_part(grid, lines, group) for group in groups]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _narrowed(grid: Grid, widths: Sequence[int], columns: int) -> list[int]:
    """Take from the widest columns of text until all fit, or none has more to give.

    The first column is left alone: what is in it is copied.
    """
    narrowed = list(widths)
    text = [column for column in range(1, len(widths)) if grid.is_left(column)]
    while text and _total(narrowed) > columns:
        widest = max(text, key=lambda column: narrowed[column])
        if narrowed[widest] <= _NARROW:
            break
        narrowed[widest] -= 1
    return narrowed


def _groups(widths: Sequence[int], columns: int) -> list[dict[int, int]]:
    """Deal the columns out, in order; each group has the first one, and room for a further one."""
    first = min(widths[0], max(_NARROW, columns // 2))
    groups: list[dict[int, int]] = [{0: first}]
    for column, size in list(enumerate(widths))[1:]:
        size = min(size, columns - first - _GAP)
        if len(groups[-1]) > 1 and _total([*groups[-1].values(), size]) > columns:
            groups.append({0: first})
        groups[-1][column] = size
    return groups


def _part(grid: Grid, lines: Sequence[tuple[str, ...]], group: dict[int, int]) -> Grid:
    """Return the table of some columns, whose cells are broken to their width."""
    header, *rows = lines
    names = tuple(
        header[column][: _longest(header[column], size)] for column, size in group.items()
    )
    cells = [[_broken(row[column], size) for column, size in group.items()] for row in rows]
    left = frozenset(place for place, column in enumerate(group) if grid.is_left(column))
    return replace(
        grid, header=names, rows=tuple(line for row in cells for line in _stacked(row)), left=left
    )


def _stacked(cells: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the lines of a row whose cells have several."""
    height = max(map(len, cells))
    return [
        tuple(cell[line] if line < len(cell) else "" for cell in cells) for line in range(height)
    ]


def _broken(text: str, size: int) -> list[str]:
    """Break a text at spaces, or inside of a word that is longer than a line."""
    lines, line = [], ""
    for word in text.split(" "):
        candidate = f"{line} {word}" if line else word
        if width(candidate) <= size:
            line = candidate
            continue
        if line:
            lines.append(line)
        while width(word) > size:
            cut = _longest(word, size)
            lines.append(word[:cut])
            word = word[cut:]
        line = word
    return [*lines, line] if line or not lines else lines


def _longest(word: str, size: int) -> int:
    """Return how many characters of a word fit; at least one."""
    taken = 1
    while taken < len(word) and width(word[: taken + 1]) <= size:
        taken += 1
    return taken
