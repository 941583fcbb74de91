"""Printing on stdout: drawn by rich on a terminal, plain elsewhere."""

import sys
from collections.abc import Iterable
from typing import Any

from cbench_server.reports.grid import Grid, printable, to_text
from cbench_server.results import strict_json


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
    print(strict_json(document))


def print_parts(parts: Iterable[str]) -> None:
    """Write text piece by piece as it is made."""
    for part in parts:
        sys.stdout.write(part)


def print_line(line: str) -> None:
    """Write a line and send it off, for whoever reads along."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
