"""Text on stdout: as wide as the terminal, and as coloured as it may be."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from cbench_server.texts.fitting import fitted
from cbench_server.texts.grid import Grid, printable, printable_lines, to_text

_SHORT = 80
_NARROWEST = 40
_FIRST = ("id", "dataset", "context", "question", "turns", "response")


def draw(grid: Grid) -> str:
    """Draw a table for stdout, no wider than the terminal: in several parts if need be."""
    columns = terminal_width()
    if columns is None:
        return to_text(grid)
    parts = [to_text(part) for part in fitted(grid, columns)]
    if is_coloured(sys.stdout):
        parts = [_with_bold_head(part) for part in parts]
    return "\n\n".join(parts)


def _with_bold_head(table: str) -> str:
    lines = table.split("\n")
    # The header may have several lines; the rule is the first that has nothing but dashes.
    rule = next(place for place, line in enumerate(lines) if not line.strip("- "))
    return "\n".join([*(f"\033[1m{line}\033[0m" for line in lines[:rule]), *lines[rule:]])


def terminal_width() -> int | None:
    """Return how wide lines on stdout may be; None in a pipe, where programs read whole lines."""
    if not sys.stdout.isatty():
        return None
    return max(_NARROWEST, shutil.get_terminal_size().columns)


def is_coloured(stream: TextIO) -> bool:
    """Whether to colour: on a terminal that can, unless NO_COLOR says no (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_json(document: Any) -> None:
    """Print strict JSON, safe for a terminal."""
    print(json_text(document))


def json_text(document: Any, indent: int | None = 2) -> str:
    """Return strict JSON in which control characters are written as JSON escapes them."""
    from cbench_server.results import strict_json

    lines = strict_json(document, indent).split("\n")
    return "\n".join(line if line.isprintable() else _escaped(line) for line in lines)


def _escaped(line: str) -> str:
    # JSON asks for that of those below U+0020 only; terminals heed others as well.
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in line)


def print_line(line: str) -> None:
    """Write a line and flush it, for a reader that follows along."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def in_order(example: Mapping[str, Any]) -> dict[str, Any]:
    """Put well-known fields first and the rest by name: fields lose their order on the wire."""
    first = [name for name in _FIRST if name in example]
    return {name: example[name] for name in [*first, *sorted(example.keys() - set(first))]}


def render_fields(example: Mapping[str, Any]) -> str:
    """Render name and value of each field; long values get separate lines."""
    from cbench_server.results import strict_json

    lines = []
    for name, value in example.items():
        text = printable_lines(value if isinstance(value, str) else strict_json(value, None))
        is_short = "\n" not in text and len(text) < _SHORT
        separator = " " if is_short else "\n"
        lines.append(f"  {printable(name)}:{separator}{text if is_short else indented(text)}")
    return "\n".join(lines)


def indented(text: str) -> str:
    """Indent every line."""
    return "\n".join(f"    {line}" for line in text.splitlines())
