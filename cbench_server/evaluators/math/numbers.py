"""Numbers as answers write them: signs, currencies, separators, fractions, percent, units."""

import re
from dataclasses import dataclass
from fractions import Fraction

from cbench_server.evaluators.math.units import canonical_unit

_MAX_LENGTH = 400
_MAX_EXPONENT = 400

_DIGITS = (
    r"(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?"  # 1,234.5
    r"|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?"  # 12,34,567
    r"|\d{1,3}(?:\ \d{3})+(?:\.\d+)?"  # 1 234.5
    r"|\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?"  # 1.234.567
    r"|\d{1,3}(?:\.\d{3})+,\d+"  # 1.234,5
    r"|\d+\.\d*|\.\d+|\d+)"
)
_CURRENCY = r"[$€£¥₹₩₽฿]"
_NUMBER = re.compile(
    rf"""(?P<sign>[-+]?)\s*(?P<currency>{_CURRENCY})?\s*(?P<inner>-?)\s*
    (?:
      (?P<whole>\d+)\s*(?:\\frac\{{(?P<over1>\d+)\}}\{{(?P<under1>\d+)\}}|\s(?P<over2>\d+)/(?P<under2>\d+))
    | \\frac\{{\s*(?P<over3>-?\s*{_DIGITS})\s*\}}\{{\s*(?P<under3>-?\s*{_DIGITS})\s*\}}
    | (?P<over4>{_DIGITS})\s*/\s*(?P<under4>{_DIGITS})
    | (?P<digits>{_DIGITS})(?:[eE](?P<e>[-+]?\d+)
        |\s*(?:\\times|\\cdot|\*|x)\s*10\s*\^\s*(?:\{{\s*(?P<power>[-+]?\d+)\s*\}}|(?P<bare>-?\d+)))?
    )
    \s*(?P<currency_after>{_CURRENCY})?
    \s*(?P<percent>%|percent\b|percentage\b|pct\b|per\ cent\b)?
    (?P<unit>.*)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_CLOCK = re.compile(r"(\d{1,4})((?::\d{1,4})+)\s*(?:([ap])\.?\s*m\.?)?", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"(-?\d+),(\d+)")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written."""

    value: Fraction
    is_percent: bool = False
    decimals: int | None = None
    """Digits after the decimal point, where it was written with one."""
    unit: str = ""
    """What was counted, in a canonical word; empty for none or one we do not know."""


def read_number(text: str) -> Number | None:
    """Read plain notation that is one number, perhaps with a unit; None if it is something else."""
    if not text or len(text) > _MAX_LENGTH:
        return None
    if text[0] == "(" and text[-1] == ")" and "," not in text:
        text = text[1:-1].strip()
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    unit = canonical_unit(_with_gap(found), after_percent=bool(found["percent"]))
    if unit is None:
        return None
    try:
        value, decimals = _value(found)
    except ZeroDivisionError:
        return None
    if value is None:
        return None
    if (found["sign"] == "-") != (found["inner"] == "-"):
        value = -value
    currency = found["currency"] or found["currency_after"]
    return Number(value, bool(found["percent"]), decimals, unit or _CURRENCIES.get(currency, ""))


def _with_gap(found: re.Match[str]) -> str:
    """Return what follows a number, with the space before it if it is a unit of one letter."""
    start = found.start("unit")
    is_letter = re.match(r"[^\W\d_](?![^\W\d_])", found["unit"])
    return (
        f" {found['unit']}" if is_letter and found.string[:start][-1:].isspace() else found["unit"]
    )


_CURRENCIES = {"$": "dollar", "€": "euro", "£": "sterling", "¥": "yen", "₹": "rupee"}


def _value(found: re.Match[str]) -> tuple[Fraction | None, int | None]:
    if found["whole"]:
        over, under = found["over1"] or found["over2"], found["under1"] or found["under2"]
        return int(found["whole"]) + Fraction(int(over), int(under)), None
    if over := found["over3"] or found["over4"]:
        return _decimal(over) / _decimal(found["under3"] or found["under4"]), None
    exponent = int(found["e"] or found["power"] or found["bare"] or 0)
    if abs(exponent) > _MAX_EXPONENT:
        return None, None
    digits = _point(found["digits"])
    decimals = len(digits.partition(".")[2]) if "." in digits else None
    return _decimal(digits) * Fraction(10) ** exponent, decimals


def _decimal(digits: str) -> Fraction:
    return Fraction(_point(digits).replace(" ", ""))


def _point(digits: str) -> str:
    """Write a number with a point for its decimals and nothing between its thousands."""
    digits = digits.strip().replace(" ", "")
    if digits.count(".") > 1 or ("," in digits and digits.rfind(",") > digits.find(".") > -1):
        digits = digits.replace(".", "").replace(",", ".")
    return digits.replace(",", "").rstrip(".")


def same_number(gold: Number, given: Number) -> bool:
    """Whether two numbers are the same answer.

    A percentage equals both its share and its bare number, as graders have it.
    Two known units have to be the same.
    """
    if gold.unit and given.unit and gold.unit != given.unit:
        return False
    if gold.is_percent != given.is_percent and (gold.unit or given.unit):
        return False
    if gold.is_percent == given.is_percent:
        return close(gold, given)
    return close(gold, given) or close(_share(gold), _share(given))


def _share(number: Number) -> Number:
    if not number.is_percent:
        return number
    decimals = None if number.decimals is None else number.decimals + 2
    return Number(number.value / 100, decimals=decimals)


def close(a: Number, b: Number) -> bool:
    """Whether two values agree: exactly, or as closely as a written decimal can tell."""
    if a.value == b.value:
        return True
    if a.decimals is None and b.decimals is None:
        return False
    difference, size = abs(a.value - b.value), max(abs(a.value), abs(b.value))
    # Six places, and not only because both are small.
    if difference * 2_000_000 <= 1 and difference * 500_000 <= size:
        return True
    if a.decimals is not None and b.decimals is not None:
        return False
    written, exact = (a, b) if a.decimals is not None else (b, a)
    return exact.value.denominator != 1 and agrees(
        written.value, written.decimals or 0, exact.value
    )


def agrees(written: Fraction, decimals: int, exact: Fraction) -> bool:
    """Whether a decimal of five digits or more is an exact value, rounded or cut off."""
    shown = abs(written) * 10**decimals
    return shown >= 10_000 and abs(abs(exact) * 10**decimals - shown) < 1 and written * exact > 0


def read_clock(text: str) -> tuple[tuple[int, ...], str] | None:
    """Read a time or ratio such as 7:30 pm as its numbers and `a`, `p` or nothing."""
    if len(text) > _MAX_LENGTH or (found := _CLOCK.fullmatch(text)) is None:
        return None
    parts = (int(found[1]), *(int(part) for part in found[2][1:].split(":")))
    return parts, (found[3] or "").lower()


def same_clock(gold: tuple[tuple[int, ...], str], given: tuple[tuple[int, ...], str]) -> bool:
    """Whether two times are the same; morning or afternoon counts where both say it."""
    return gold[0] == given[0] and (gold[1] == given[1] or not gold[1] or not given[1])


def read_decimal_comma(text: str) -> Number | None:
    """Read 2,74 as 2.74; it may also be a list, so a difference proves nothing."""
    if len(text) > _MAX_LENGTH or (found := _DECIMAL_COMMA.fullmatch(text)) is None:
        return None
    return Number(Fraction(f"{found[1]}.{found[2]}"), decimals=len(found[2]))
