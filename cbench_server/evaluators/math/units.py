"""Units: what may follow a number without changing it, and which ones differ."""

import re

# Only units that are told apart: 5 hours are not 5 minutes. Others are ignored.
_KNOWN = {
    "mm": "millimeter|millimeters|millimetre|millimetres",
    "cm": "centimeter|centimeters|centimetre|centimetres|cms",
    "m": "meter|meters|metre|metres",
    "km": "kilometer|kilometers|kilometre|kilometres|kms",
    "inch": "inches",
    "foot": "feet|ft",
    "yard": "yards|yd|yds",
    "mile": "miles|mi",
    "second": "seconds|sec|secs",
    "minute": "minutes|min|mins",
    "hour": "hours|hr|hrs",
    "day": "days",
    "week": "weeks",
    "month": "months",
    "year": "years|yr|yrs",
    "gram": "grams|g",
    "kg": "kilogram|kilograms|kgs",
    "ounce": "ounces|oz",
    "liter": "liters|litre|litres",
    "ml": "milliliter|milliliters|millilitre|millilitres",
    "cent": "cents|¢",
    "dollar": "dollars|usd",
    "euro": "euros|eur",
    "degree": "degrees|deg|^\\circ",
    "radian": "radians|rad",
}
_CANONICAL = {
    spelling: unit for unit, others in _KNOWN.items() for spelling in (unit, *others.split("|"))
}
# A number before one of these is part of an expression.
_NOT_UNITS = re.compile(
    r"pi|sqrt|and|or|to|plus|minus|times|over|mod|sin|cos|tan|cot|csc|log|ln|exp|inf|infinity|infty"
    r"|choose|if|where|union"
)
_TRAILING = re.compile(
    r"(?<=[\d})\]A-Za-z])\s+([^\W\d_]{2,}(?:\s+[^\W\d_]{2,})*)\s*(?:\^\s*\{?[23]\}?)?$"
)
_LETTER_UNITS = frozenset("mgshlL")
_WORD = re.compile(r"[^\W\d_]+")
_SHAPE = re.compile(r"(?:[^\W\d_]|[\s./'’-]|\^\s*\{?\s*-?[123]\s*\}?|[()])*")


def is_unit(word: str) -> bool:
    """Whether a word is a unit that is told apart from others."""
    return word.lower() in _CANONICAL


def canonical_unit(text: str, *, after_percent: bool = False) -> str | None:
    """Name the unit that follows a number.

    Empty where there is none or one we do not tell apart; None where the text
    is not a unit but part of an expression.
    """
    stripped = text.strip().rstrip(".")
    if not stripped:
        return ""
    stripped = re.sub(r"\^\s*\{?\s*\\circ\s*\}?", " degrees ", stripped).strip()
    if not _SHAPE.fullmatch(stripped) or stripped[0] in "/.-'’(^":
        return None
    words = _WORD.findall(stripped)
    separated = text[:1].isspace() or text[:1] == "^"
    for word in words:
        if _NOT_UNITS.fullmatch(word.lower()):
            return None
        if len(word) == 1 and word.isascii() and not (separated and word in _LETTER_UNITS):
            return None
        # Two letters next to a number are as likely two variables.
        if len(word) == 2 and word.isascii() and not separated and word.lower() not in _CANONICAL:
            return None
    if after_percent or "/" in stripped or "^" in stripped or len(words) > 1:
        return ""
    return _CANONICAL.get(words[0].lower(), "") if words else None


def without_unit(text: str) -> str:
    """Leave out words at the end of an expression: `3\\sqrt{2} square units` is `3\\sqrt{2}`."""
    found = _TRAILING.search(text)
    if found is None or any(_NOT_UNITS.fullmatch(word.lower()) for word in found[1].split()):
        return text
    return text[: found.start()]
