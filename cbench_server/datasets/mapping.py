"""Mappings from the columns of any source to the fields of an example: `answer=gold.text[0]`.

A path is a column, then `.name` for a key, `[0]` for a place (from the end with
a minus), `["odd name"]` for a key that is no plain word, and `[*]` for all of a
list. Nothing is executed. An example has the mapped fields and an `id`, no other.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from cbench_server.errors import BadDataset, InvalidSpec, blaming, entry_of
from cbench_server.limits import MAX_PATH
from cbench_server.types import Example

Step = str | int
_ALL = "*"
Path = tuple[tuple[str, Step], ...]
"""Steps, each with its kind: a key, a place, or all."""

_CHECKED_ROWS = 20
_WORD = re.compile(r"[\w-]+(?: [\w-]+)*")
_STEP = re.compile(
    r"\.(?P<key>[\w-]+)|\[(?P<place>-?\d{1,6})\]|\[(?P<all>\*)\]"
    r"|\[\"(?P<quoted>[^\"]+)\"\]|\['(?P<single>[^']+)'\]"
)
# Fields that are one text: several are joined.
_TEXTS = ("context", "question")
_FIELD = re.compile(r"[A-Za-z_]\w*")


def read_path(text: str) -> Path:
    """Read a path, or raise InvalidSpec that shows where it goes wrong."""
    if len(text) > MAX_PATH:
        raise InvalidSpec(
            f'a path of a mapping has at most {MAX_PATH:,} characters; "{text[:20]}..." has '
            f"{len(text):,}."
        )
    first = _WORD.match(text)
    position = first.end() if first else 0
    steps: list[tuple[str, Step]] = [("key", first[0])] if first else []
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            raise InvalidSpec(
                f'"{text}" is not a valid path: at "{text[position:]}" there should be .name, '
                '[0], [*] or ["name"].'
            )
        steps.append(_step(found))
        position = found.end()
    if not steps:
        raise InvalidSpec("a path of a mapping is empty; write it as field=column.")
    return tuple(steps)


def _step(found: re.Match[str]) -> tuple[str, Step]:
    if found["place"] is not None:
        return "place", int(found["place"])
    if found["all"] is not None:
        return _ALL, _ALL
    return "key", found["key"] or found["quoted"] or found["single"]


def read_mapping(mapping: Mapping[str, str]) -> dict[str, Path]:
    """Read the paths of a mapping, by field."""
    for field in mapping:
        if not _FIELD.fullmatch(field):
            raise InvalidSpec(
                f'"{field}" is not a valid field name; use letters and digits.', field="mapping"
            )
    paths = {}
    for field, text in mapping.items():
        with blaming(entry_of("mapping", field)):
            paths[field] = read_path(text)
    return paths


def mapped(rows: Iterator[Example], mapping: Mapping[str, str], label: str) -> Iterator[Example]:
    """Map rows, after a look at the first ones; BadDataset lists the columns if one does not fit.

    Wrong paths are refused at once, before the first row is read.
    """
    return _mapped(rows, mapping, read_mapping(mapping), label)


def _mapped(
    rows: Iterator[Example], mapping: Mapping[str, str], paths: Mapping[str, Path], label: str
) -> Iterator[Example]:
    first = [*islice(rows, _CHECKED_ROWS)]
    for field, path in paths.items():
        if first and all(_at(row, path) is None for row in first):
            raise BadDataset(
                f'dataset "{label}": none of the first {len(first)} rows has '
                f'"{mapping[field]}", which should become "{field}". '
                f"The columns are: {', '.join(_columns(first))}."
            )
    for row in chain(first, rows):
        yield _example(row, paths)


def _example(row: Example, paths: Mapping[str, Path]) -> Example:
    example: Example = {} if "id" in paths or row.get("id") is None else {"id": row["id"]}
    for field, path in paths.items():
        value = _at(row, path)
        if field in _TEXTS and isinstance(value, list):
            value = "\n\n".join(str(each) for each in value if each is not None)
        if value is not None:
            example[field] = value
    return example


def _at(value: Any, path: Path) -> Any:
    """Return what a path leads to; None where it leads nowhere."""
    for number, (kind, step) in enumerate(path):
        if kind == _ALL:
            if not isinstance(value, list | tuple):
                return None
            found = [_at(each, path[number + 1 :]) for each in value]
            flat = [item for each in found for item in (each if isinstance(each, list) else [each])]
            return [each for each in flat if each is not None] or None
        if kind == "place":
            if not isinstance(value, list | tuple) or not -len(value) <= int(step) < len(value):
                return None
            value = value[int(step)]
        elif isinstance(value, Mapping) and step in value:
            value = value[step]
        else:
            return None
    return value


def _columns(rows: list[Example]) -> list[str]:
    """Name the columns as paths name them, with the keys of those that have any."""
    shown: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            within = value[0] if isinstance(value, list) and value else value
            keys = f" ({', '.join(map(str, within))})" if isinstance(within, Mapping) else ""
            shown[str(name)] = max(shown.get(str(name), ""), keys, key=len)
    return [f"{_as_path(name)}{keys:.200}" for name, keys in shown.items()]


def _as_path(name: str) -> str:
    return name if _WORD.fullmatch(name) else f'["{name}"]'
