"""Checks of what a file of a run holds: what decodes may still be what nobody could be shown.

A run that was made here has none of it. One that is imported would make every list of runs fail
that it is on, or every page of rows.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from cbench_server.limits import MAX_IMPORTED_PLACES
from cbench_server.texts.plain import MAX_DEPTH

_LONG, _SHORT = 2**63, 2**31
# The contract gives these 32 bits.
_SHORT_NUMBERS = frozenset(
    {
        *("attempts", "calls_in_flight", "repeat", "repeats", "max_concurrency"),
        *("timed_rows", "asked_again", "few_shot", "max_tokens"),
    }
)
# What users gave may be an integer that no message holds; who asks for it is told so.
_OF_USERS = frozenset({"example_id"})
_TIMES = frozenset({"create_time", "end_time"})
# The years 1 and 9999.
_FIRST_TIME, _LAST_TIME = -62_135_596_800.0, 253_402_300_799.0
_PLAIN = (str, bytes, int, float, type(None))


def check_time(time: float, name: str) -> None:
    """Raise ValueError for what is no time of a calendar."""
    if not _FIRST_TIME <= time <= _LAST_TIME:
        raise ValueError(f"{name} is no time: {time}")


def check_count(count: int, name: str) -> None:
    """Raise ValueError for more events or examples than a run has, or fewer than none."""
    if not 0 <= count <= MAX_IMPORTED_PLACES:
        raise ValueError(f"{name} is not between 0 and {MAX_IMPORTED_PLACES:,}: {count}")


def check_record(record: Any, path: str = "") -> None:
    """Raise ValueError for numbers in a row or run that are too large, or values of no kind."""
    for name, value in _attributes(record).items():
        place = f"{path}{name}"
        if name in _OF_USERS:
            _check(value, place, 0)
        elif isinstance(value, int) and not isinstance(value, bool):
            _check_number(value, place, _SHORT if name in _SHORT_NUMBERS else _LONG)
        elif name in _TIMES and value is not None:
            check_time(value, place)
        else:
            _check(value, place, 0)


def check_fields(value: Any, path: str) -> None:
    """Raise ValueError unless a value is a map of fields that can be told."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{path} has no fields")
    _check(value, path, 0)


def _attributes(record: Any) -> dict[str, Any]:
    if isinstance(record, msgspec.Struct):
        return msgspec.structs.asdict(record)
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _check_number(number: int, path: str, most: int) -> None:
    if not -most <= number < most:
        raise ValueError(f"{path} is beyond {most.bit_length()} bits: {number}")


def _check(value: Any, path: str, depth: int) -> None:
    if isinstance(value, _PLAIN):
        return
    if depth > MAX_DEPTH:
        raise ValueError(f"{path[:80]} nests more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{path} has the key {key!r}, which is no text")
            _check(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple | frozenset):
        for item in value:
            _check(item, f"{path}[]", depth + 1)
    elif is_dataclass(value) or isinstance(value, msgspec.Struct):
        check_record(value, f"{path}.")
    else:
        raise ValueError(f"{path} holds a {type(value).__name__}")
