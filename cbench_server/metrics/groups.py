"""Groups of rows by a field of their examples: what a row's group is, and how groups are ordered.

A field with more than twenty different numbers is put into bins, each from a
power of two up to the next.
"""

import difflib
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from cbench_server.results import EvalRow

NONE = "(none)"
"""The group of rows whose examples lack the field."""
OWN_FIELDS = ("config", "dataset")
"""Fields that every row has: the dataset that it is of, and its config alone."""
MOST_VALUES = 20
"""Numbers that are groups of their own; where there are more, they are put into bins."""
FEW_ROWS = 30
"""A group with fewer rows than this says so."""

_FIELDS_SHOWN = 20
_LONGEST = 200
_DIGITS = re.compile(r"(\d+)")


def group_text(value: Any) -> str:
    """Write the value of a field as rows keep it; empty for none."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def groups_of(example: Mapping[str, Any], fields: Collection[str]) -> dict[str, str]:
    """Return what a row keeps of its example to be grouped by."""
    kept = {name: group_text(example.get(name)) for name in fields if name not in OWN_FIELDS}
    return {name: text for name, text in kept.items() if text}


def group_of(row: EvalRow, field: str) -> str:
    """Return the value by which a row is grouped, empty where it has none."""
    if field == "dataset":
        return row.dataset
    if field == "config":
        return row.dataset.partition(":")[2] or row.dataset
    return row.groups.get(field) or group_text(row.metadata.get(field))


def is_group(name: str, value: Any) -> bool:
    """Whether a field can tell groups apart: a short text, a number, or yes and no."""
    if name in ("id", "context", "question", "answer", "answers", "turns"):
        return False
    return isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 60)


def unknown_field(asked: str, known: Iterable[str]) -> str:
    """Say that no example has a field, and which there are."""
    names = [*sorted({*known}.difference(OWN_FIELDS)), *OWN_FIELDS]
    more = ", ..." if len(names) > _FIELDS_SHOWN else ""
    near = difflib.get_close_matches(asked, names, n=1, cutoff=0.5)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    return (
        f'group_by: no example has a field "{asked}".{hint} Fields to group by: '
        f"{', '.join(names[:_FIELDS_SHOWN])}{more}"
    )


def group_names(values: Collection[str]) -> dict[str, str]:
    """Return the name of the group that each value is in, the groups in their order."""
    known = [value for value in values if value]
    numbers = {value: number for value in known if (number := _number(value)) is not None}
    if known and len(numbers) == len(known):
        ordered = sorted(known, key=lambda value: numbers[value])
        if len(known) > MOST_VALUES:
            whole = all(number.is_integer() for number in numbers.values())
            names = {value: _bin(numbers[value], whole=whole) for value in ordered}
        else:
            names = {value: value for value in ordered}
    else:
        names = {value: value for value in sorted(known, key=group_order)}
    return names | ({"": NONE} if "" in values else {})


def group_order(name: str) -> tuple[Any, ...]:
    """Order groups as people do: by the number they begin with, Level 2 before Level 10."""
    number = _number(name.partition(" ")[0])
    return (name == NONE, number is None, number or 0.0, _natural(name))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bin(number: float, *, whole: bool) -> str:
    """Name the bin of a number: `4096 to 8191`, or `0.25 to <0.5` where not all are whole."""
    if number == 0.0:
        return "0"
    sign = "-" if number < 0 else ""
    exponent = math.frexp(abs(number))[1] - 1
    low, high = 2.0**exponent, 2.0 ** (exponent + 1)
    if not whole:
        return f"{sign}{low:g} to <{sign}{high:g}"
    last = int(high) - 1
    return f"{sign}{int(low)} to {sign}{last}" if last > low else f"{sign}{int(low)}"


def _natural(text: str) -> list[tuple[int, int, str]]:
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in _DIGITS.split(text)
        if part
    ]
