"""Values of flags, read from text; errors say how to write the value."""

import argparse
import json
import math
import re
from typing import Any

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|m|h|)")


# What the messages of the contract hold.
_INT32 = 2**31 - 1
_INT64 = 2**63 - 1
_YEAR_S = 366 * 86400.0


def positive_int(text: str) -> int:
    """Read a whole number of at least 1."""
    return _whole(text, 1, _INT32, " of at least 1")


def natural_int(text: str) -> int:
    """Read a whole number of at least 0."""
    return _whole(text, 0, _INT32, " of at least 0")


def whole_number(text: str) -> int:
    """Read a whole number."""
    return _whole(text, -_INT64, _INT64, "")


def _whole(text: str, least: int, most: int, kind: str) -> int:
    # Python reads no number of thousands of digits.
    if re.fullmatch(r"-?\d{1,40}", text) and least <= int(text):
        if int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f'"{text}" is more than {most:,}.')
    raise argparse.ArgumentTypeError(f'"{text}" is not a whole number{kind}.')


def number(text: str) -> float:
    """Read a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'"{text}" is not a number.')
    return value


def duration(text: str) -> float:
    """Read a span such as `500ms`, `60`, `60s`, `2m` or `1h`, in seconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a time; write it as 500ms, 60s, 2m or 1h.'
        )
    return _at_most(float(match[1]) * _UNITS[match[2]], _YEAR_S, text, "a year")


def age(text: str) -> float:
    """Read a long span such as `12h`, `30d` or `8w`, in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([hdw])", text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f'"{text}" is not an age; write it as 12h, 30d or 8w.')
    seconds = float(match[1]) * {"h": 3600.0, "d": 86400.0, "w": 604800.0}[match[2]]
    return _at_most(seconds, 50 * _YEAR_S, text, "fifty years")


def size(text: str) -> int:
    """Read a number of bytes such as `500M` or `5G`; K, M, G and T are powers of 1024."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f'"{text}" is not a size; write it as 500M or 5G.')
    found = float(match[1]) * 1024.0 ** " KMGT".index(match[2] or " ")
    return int(_at_most(found, _INT64, text, "any disk has"))


def _at_most(value: float, most: float, text: str, name: str) -> float:
    if value > most:
        raise argparse.ArgumentTypeError(f'"{text}" is more than {name}.')
    return value


def label(text: str) -> tuple[str, str]:
    """Read `key=value`, both text."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f'"{text}" is not a pair; write it as key=value.')
    return key, value


def mapping(text: str) -> tuple[tuple[str, str], ...]:
    """Read `field=path` with commas between them, which may be within brackets as well."""
    return tuple(label(part.strip()) for part in re.split(r",(?![^\[]*\])", text))


class JoinMappings(argparse.Action):
    """Joins the mappings of a flag that is given several times, each field once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        joined = [*vars(namespace).get(self.dest, ()), *values]
        fields = [field for field, _ in joined]
        if twice := [field for field in dict.fromkeys(fields) if fields.count(field) > 1]:
            raise argparse.ArgumentError(
                self, f"it maps {', '.join(twice)} more than once; give each field one path."
            )
        setattr(namespace, self.dest, joined)


def names(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(f'"{text}" is not a list of names; write it as A,B.')
    return found


def option(text: str) -> tuple[str, str, Any]:
    """Read `key=value` or `OWNER.key=value` into (owner, key, value).

    The value is JSON if it can be parsed (`0.3`, `true`, `[1]`), else text.
    """
    left, equals, right = text.partition("=")
    owner, _, key = left.rpartition(".")
    if not equals or not key:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not an option; write it as key=value or NAME.key=value.'
        )
    try:
        return owner, key, json.loads(right)
    except (ValueError, RecursionError):
        return owner, key, right


def owned_option(text: str) -> tuple[str, str, Any]:
    """Read `OWNER.key=value`."""
    owner, key, value = option(text)
    if not owner:
        raise argparse.ArgumentTypeError(f'"{text}" names no owner; write it as NAME.key=value.')
    return owner, key, value


class AppendSystem(argparse.Action):
    """Collects systems of every kind in the order of the command line, for `--name`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        kind = (option_string or "").lstrip("-")
        namespace.systems = [*(vars(namespace).get("systems") or []), (kind, values)]
