"""Number words of English, written as digits where they can mean nothing else.

"seven" is 7, "twenty-five" 25, "1.5 million" 1500000. What may mean something else stays as it
is: a lone "one" ("one of them"), "a hundred", "two thirds", and magnitudes without a number.
"""

import re
from collections.abc import Sequence
from decimal import Decimal

# fmt: off
_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
# fmt: on
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SMALL = {name: value for value, name in enumerate(_UNITS)}
_ROUND = {name: 10 * value for value, name in enumerate(_TENS, 2)}
_HUNDRED = "hundred"
_MAGNITUDES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}

# An underscore may divide words.
_BEGIN, _END = r"(?<![^\W_])", r"(?![^\W_])"
_NAMED = f"(?:{'|'.join([*_SMALL, *_ROUND])}){_END}"
_SCALED = f"(?:{'|'.join([_HUNDRED, *_MAGNITUDES])}){_END}"
_DIGITS = r"(?:(?<!,)\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
# One space, a hyphen, or the end of a line, perhaps with marks of emphasis: cells of a table
# stand further apart.
_STEP = r"[*_~`]{0,3}(?:[ \-\u2010]|[ ]?\r?\n[ ]?)[*_~`]{0,3}"
_FRACTIONS = "halves|quarters|(?:third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)s?"
_RUN = re.compile(
    rf"{_BEGIN}(?:{_NAMED}|(?<!\d[./\u2044]){_DIGITS}(?={_STEP}{_SCALED}))"
    rf"(?:{_STEP}(?:and{_STEP}(?={_NAMED}))?(?:{_NAMED}|{_SCALED}))*+"
    rf"(?!{_STEP}(?:{_FRACTIONS}){_END})"
)
_PARTS = re.compile(rf"{_DIGITS}|[a-z]+")


def with_digits(text: str) -> str:
    """Write the number words of a text, which is in lower case, as digits."""
    return _RUN.sub(_run_in_digits, text)


def _run_in_digits(run: re.Match[str]) -> str:
    parts = _PARTS.findall(run[0])
    written: list[str] = []
    place = 0
    while place < len(parts):
        value, end = _number(parts, place)
        is_plain = value is None or parts[place:end] == ["one"]
        written.append(parts[place] if is_plain else f"{value.normalize():f}")  # type: ignore[union-attr]
        place = place + 1 if is_plain else end
    return " ".join(written)


def _number(parts: Sequence[str], place: int) -> tuple[Decimal | None, int]:
    """Read the longest number that begins at a place; None if none does."""
    total: Decimal | None = None
    least = 10**15
    while True:
        start = place + 1 if total is not None and parts[place : place + 1] == ["and"] else place
        group, end = _below_a_thousand(parts, start)
        if group is None:
            return total, place
        magnitude = _MAGNITUDES.get(parts[end], 0) if end < len(parts) else 0
        if magnitude and magnitude < least:
            total, place, least = (total or 0) + group * magnitude, end + 1, magnitude
            # Nothing is added to "1.5 million": a "two" on the next line is another cell.
            if group % 1:
                return total, place
        elif total is None:
            return group, end
        elif magnitude or group >= least:
            return total, place
        else:
            return total + group, end


def _below_a_thousand(parts: Sequence[str], place: int) -> tuple[Decimal | None, int]:
    value, place = _below_a_hundred(parts, place)
    if value is None or parts[place : place + 1] != [_HUNDRED]:
        return value, place
    value, place = value * 100, place + 1
    rest, end = _below_a_hundred(parts, place + (parts[place : place + 1] == ["and"]))
    return (value, place) if rest is None else (value + rest, end)


def _below_a_hundred(parts: Sequence[str], place: int) -> tuple[Decimal | None, int]:
    part = parts[place] if place < len(parts) else ""
    if part[:1].isdigit():
        return Decimal(part.replace(",", "")), place + 1
    if part in _SMALL:
        return Decimal(_SMALL[part]), place + 1
    if part not in _ROUND:
        return None, place
    unit = _SMALL.get(parts[place + 1], 0) if place + 1 < len(parts) else 0
    if 1 <= unit <= 9:
        return Decimal(_ROUND[part] + unit), place + 2
    return Decimal(_ROUND[part]), place + 1
