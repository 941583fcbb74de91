"""Comparison reports: text, Markdown and plain data."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from cbench_server.comparison.tables import FLIPS_SHOWN, tables_of
from cbench_server.comparison.values import Comparison
from cbench_server.reports.markdown import escape, grid_to_markdown
from cbench_server.texts.grid import Grid, printable, to_text


def to_table(
    comparison: Comparison, draw: Callable[[Grid], str] = to_text, flips: int = FLIPS_SHOWN
) -> str:
    """Render for a terminal: first what can be claimed, then what it rests on."""
    parts = ["\n".join(printable(each) for each in comparison.sentences)]
    parts += [
        f"{table.title}\n{draw(table)}" if table.title else draw(table)
        for table in tables_of(comparison, flips)
    ]
    if comparison.notes:
        parts.append("\n".join(map(printable, comparison.notes)))
    return "\n\n".join(parts) + "\n"


def to_markdown(comparison: Comparison, flips: int = FLIPS_SHOWN) -> str:
    """Render for a pull request."""
    parts = ["# Comparison", "\n".join(f"- {escape(each)}" for each in comparison.sentences)]
    for table in tables_of(comparison, flips):
        title = f"## {escape(table.title)}\n\n" if table.title else ""
        parts.append(title + grid_to_markdown(table))
    if comparison.notes:
        parts.append("\n".join(f"*{escape(each)}*" for each in comparison.notes))
    return "\n\n".join(parts) + "\n"


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """Give a comparison as plain data."""
    document = asdict(comparison)
    for pair, plain in zip(comparison.pairs, document["pairs"], strict=True):
        plain["is_claimed"] = pair.is_claimed
    for group, plain in zip(comparison.groups, document["groups"], strict=True):
        plain["pair"]["is_claimed"] = group.pair.is_claimed
    return document
