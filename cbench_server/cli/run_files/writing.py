"""Run files as they are written: tables in the order of the schema, and remarks as comments."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cbench_server.cli.run_files.reading import Document
from cbench_server.cli.run_files.schema import TABLES, TOP, Table

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LONG = 100


def to_toml(document: Document, remarks: Sequence[str] = ()) -> str:
    """Write a document; `remarks` stand above it."""
    parts = [_comments(remarks), _pairs(TOP, document, only_plain=True)]
    for name in ("options", "system_options"):
        if document.get(name):
            parts.append(f"{name} = {_value(document[name])}\n")
    for each in TABLES[1:]:
        if each.is_list:
            for entry in document.get(each.name, []):
                parts.append(f"\n[[{each.name}]]\n{_pairs(each, entry)}")
        elif each.name in document:
            parts.append(f"\n[{each.name}]\n{_pairs(each, document[each.name])}")
    return "".join(parts).lstrip("\n")


def _comments(remarks: Sequence[str]) -> str:
    lines = [line for remark in remarks for line in remark.splitlines()]
    return "".join(f"# {_harmless(line)}\n" for line in lines)


def _harmless(line: str) -> str:
    """Leave out what may not stand in a comment."""
    return "".join(sign if sign.isprintable() else "?" for sign in line)


def _pairs(each: Table, entry: Mapping[str, Any], *, only_plain: bool = False) -> str:
    lines = []
    for key in each.keys:
        if key.name in entry and not (only_plain and key.kind in ("options", "owned")):
            lines.append(f"{key.name} = {_written(entry[key.name])}\n")
    return "".join(lines)


def _written(value: Any) -> str:
    """Write one text of a list as that text, and a long text in lines."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return _value(value[0])
    if isinstance(value, str) and "\n" in value and len(value) > _LONG:
        lines = "\n".join(map(_escaped, value.split("\n")))
        return f'"""\n{lines}"""'
    return _value(value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return f'"{_escaped(value)}"'
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(str(name))} = {_value(each)}" for name, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return f"[{', '.join(map(_value, value))}]"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else f'"{_escaped(name)}"'


def _escaped(text: str) -> str:
    return "".join(_signs(text))


def _signs(text: str) -> Iterator[str]:
    for sign in text:
        if sign in _ESCAPES:
            yield _ESCAPES[sign]
        elif not sign.isprintable():
            yield f"\\u{ord(sign):04x}" if ord(sign) <= 0xFFFF else f"\\U{ord(sign):08x}"
        else:
            yield sign
