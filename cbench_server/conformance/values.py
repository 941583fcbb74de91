"""Values of a case: those that TOML cannot express, and the comparison of answers with them.

`{"$null" = true}` and its like stand for values; `{"$has" = "x"}` and its like
stand for claims about a value. Kinds are compared strictly: 1 is not 1.0.
"""

import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

UNSET = object()
"""A `Value` or id with no kind set."""

FALSE_NULL = object()
"""A `Value` with `null_value: false`."""

ABSENT = object()
_SHOWN = 160


def _lists(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def _maps(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"m": value}
    return value


_VALUES: dict[str, Callable[[Any], Any]] = {
    "$null": lambda is_true: None if is_true else FALSE_NULL,
    "$bytes": bytes.fromhex,
    "$repeat": lambda pair: pair[0] * pair[1],
    "$lists": _lists,
    "$maps": _maps,
    "$unset": lambda _: UNSET,
    "$many": lambda count: {f"f{number}": number for number in range(count)},
}


def natural(value: Any, names: Mapping[str, Any]) -> Any:
    """Replace placeholders: `names` such as `$key`, and the values above."""
    if isinstance(value, str):
        return _named(value, names)
    if isinstance(value, list):
        return [natural(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (key := next(iter(value))) in _VALUES:
        return _VALUES[key](natural(value[key], names))
    return {_named(key, names): natural(item, names) for key, item in value.items()}


def _named(text: str, names: Mapping[str, Any]) -> Any:
    if text in names:
        return names[text]
    if "$" in text:
        for name, value in names.items():
            if name in text:
                text = text.replace(name, str(value))
    return text


def _plain(text: str) -> str:
    return text.lower().replace("_", "")


# Each gives what is wrong, or nothing.
_CLAIMS: dict[str, Callable[[Any, Any], bool]] = {
    "$any": lambda _, actual: actual is not ABSENT,
    "$has": lambda part, actual: isinstance(actual, str) and part in actual,
    "$names": lambda part, actual: isinstance(actual, str) and _plain(part) in _plain(actual),
    "$matches": lambda pattern, actual: bool(re.fullmatch(pattern, str(actual))),
    "$min": lambda least, actual: isinstance(actual, int | float) and actual >= least,
    "$max": lambda most, actual: isinstance(actual, int | float) and actual <= most,
    "$one_of": lambda choices, actual: any(difference(each, actual) is None for each in choices),
    "$includes": lambda parts, actual: isinstance(actual, list) and set(parts) <= set(actual),
    "$length": lambda length, actual: hasattr(actual, "__len__") and len(actual) == length,
    "$partly": lambda parts, actual: isinstance(actual, dict) and partly(parts, actual) is None,
}


def difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """Return where `actual` differs from what was expected, or None."""
    if isinstance(expected, dict) and expected and all(key in _CLAIMS for key in expected):
        for claim, argument in expected.items():
            if not _CLAIMS[claim](argument, actual):
                return f"{path}: {claim[1:]} {_show(argument)} does not hold of {_show(actual)}"
        return None
    if isinstance(expected, dict) and isinstance(actual, dict):
        if extra := sorted(actual.keys() - expected.keys()):
            return f"{path} has {_show(extra)} too many"
        return partly(expected, actual, path)
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = zip(expected, actual, strict=True)
        found = (difference(one, other, f"{path}[{i}]") for i, (one, other) in enumerate(pairs))
        return next(filter(None, found), None)
    if _is_same(expected, actual):
        return None
    return f"{path} is {_show(actual)}, not {_show(expected)}"


def partly(expected: Mapping[str, Any], actual: Mapping[str, Any], path: str = "") -> str | None:
    """Do as `difference` for the entries expected, and ignore others."""
    found = (
        difference(value, actual.get(key, ABSENT), f"{path}.{key}" if path else key)
        for key, value in expected.items()
    )
    return next(filter(None, found), None)


def _is_same(expected: Any, actual: Any) -> bool:
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, float):
        both_nan = math.isnan(expected) and math.isnan(actual)
        return both_nan or struct.pack("d", expected) == struct.pack("d", actual)
    return bool(expected == actual)


def _show(value: Any) -> str:
    if value is ABSENT:
        return "absent"
    if isinstance(value, str | bytes) and len(value) > _SHOWN:
        return f"{value[:40]!r}... ({len(value):,} long)"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
