"""Text on stdout: drawn by rich on a terminal, plain elsewhere."""

import sys
from collections.abc import Mapping
from typing import Any

from cbench_server.texts.grid import Grid, printable, printable_lines, to_text

_SHORT = 80
_FIRST = ("id", "dataset", "context", "question", "turns", "response")


def draw(grid: Grid) -> str:
    """Draw a table for stdout."""
    if not sys.stdout.isatty():
        return to_text(grid)
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        header_style="bold",
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for column, title in enumerate(grid.header):
        justify: Any = "left" if grid.is_left(column) else "right"
        table.add_column(Text(printable(title)), justify=justify, overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console = Console(file=sys.stdout)
    with console.capture() as capture:
        console.print(table)
    return capture.get().strip("\n")


def print_json(document: Any) -> None:
    """Print strict JSON."""
    from cbench_server.results import strict_json

    print(strict_json(document))


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
