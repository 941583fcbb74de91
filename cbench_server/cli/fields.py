"""The fields of an example, for a terminal."""

from collections.abc import Mapping
from typing import Any

from cbench_server.reports.grid import printable, printable_lines
from cbench_server.results import strict_json

_SHORT = 80
_FIRST = ("id", "dataset", "context", "question", "turns", "response")


def in_order(example: Mapping[str, Any]) -> dict[str, Any]:
    """Put well-known fields first and the rest by name: fields lose their order on the wire."""
    first = [name for name in _FIRST if name in example]
    return {name: example[name] for name in [*first, *sorted(example.keys() - set(first))]}


def render_fields(example: Mapping[str, Any]) -> str:
    """Render name and value of each field; what is long gets lines of its own."""
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
