"""Texts of systems and models, cut to a length that a page can carry."""

from typing import Any

from cbench_server.results import strict_json

LONGEST_TEXT = 20_000
"""Characters a page keeps of one text, where there are few rows."""
SHORTEST_TEXT = 2_000
"""Characters it keeps however many rows there are."""
_ALL_TEXTS = 80_000_000

Text = tuple[str, int, int]
"""A text for the page: its characters, 1 if they are JSON, and how many were cut off."""


def text_limit(rows: int) -> int:
    """Return how many characters of each text a page of so many rows keeps."""
    return max(SHORTEST_TEXT, min(LONGEST_TEXT, _ALL_TEXTS // max(rows, 1)))


def page_text(value: Any, limit: int) -> Text:
    """Give a value as text; what is not text itself becomes JSON."""
    is_json = not isinstance(value, str)
    text = strict_json(value) if is_json else value
    return text[:limit], int(is_json), max(0, len(text) - limit)


def snippet(value: Any, length: int) -> str:
    """Give the beginning of a text on one line."""
    if not isinstance(value, str):
        return ""
    # Splitting a huge text to show a line of it would cost more than the line.
    line = " ".join(value[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"
