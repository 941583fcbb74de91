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
    "second": "seconds|sec|secs|s",
    "minute": "minutes|min|mins",
    "hour": "hours|hr|hrs|h",
    "day": "days",
    "week": "weeks",
    "month": "months",
    "year": "years|yr|yrs",
    "gram": "grams|g",
    "kg": "kilogram|kilograms|kgs",
    "ounce": "ounces|oz",
    "liter": "liters|litre|litres|l",
    "ml": "milliliter|milliliters|millilitre|millilitres",
    "cent": "cents|¢",
    "dollar": "dollars|usd",
    "euro": "euros|eur",
    "degree": "degrees|deg|^\\circ",
    "radian": "radians|rad",
    # Told apart by their powers.
    "unit": "units",
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
_TEXT_AT_END = re.compile(
    r"\\(?:text|textrm|mathrm|mbox)\s*\{([^{}\\\d_]*)\}\s*(?:\^\s*\{?[23]\}?)?$"
)
_LETTER_UNITS = frozenset("mgshlL")
_SHORT = frozenset({"lb", "in", "mg", "hz", "am", "pm", "sq", "cu", "of", "rs", "nm"})
_POWERS = {"square": "2", "sq": "2", "cubic": "3", "cu": "3"}
_PART = re.compile(
    r"(?:(square|sq|cubic|cu)\.?\s+)?([^\W\d_]+)(?:\s*\^\s*\{?\s*([23])\s*\}?)?", re.IGNORECASE
)
_PER = re.compile(r"\s*/\s*|\s+per\s+", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_CLOCK = re.compile(r"([ap])\.? ?m", re.IGNORECASE)
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
    words = list(_WORD.finditer(stripped))
    separated = text[:1].isspace() or text[:1] == "^"
    # Without a point or a space it is as likely a product.
    if (half := _CLOCK.fullmatch(stripped)) and (separated or "." in stripped):
        return f"{half[1].lower()}m"
    for found in words:
        word = found[0]
        if _NOT_UNITS.fullmatch(word.lower()):
            return None
        is_apart = separated or stripped[: found.start()].endswith("/")
        if len(word) == 1 and word.isascii() and not (is_apart and word in _LETTER_UNITS):
            return None
        # Two letters next to a number are as likely two variables.
        if len(word) == 2 and word.isascii() and not separated and word.lower() not in _CANONICAL:
            return None
    if not words:
        return None
    return "" if after_percent else _canonical(stripped)


def _canonical(text: str) -> str:
    """Name a unit with its power, or one per another; empty where a part is not known."""
    parts = [_PART.fullmatch(part) for part in _PER.split(text)]
    names = []
    for part in parts:
        known = _CANONICAL.get(part[2].lower()) if part else None
        if part is None or known is None:
            return ""
        power = part[3] or _POWERS.get((part[1] or "").lower(), "")
        names.append(f"{known}^{power}" if power else known)
    return "/".join(names)


def without_unit(text: str) -> str:
    """Leave out words at the end of an expression: `3\\sqrt{2} square units` is `3\\sqrt{2}`."""
    found = _TEXT_AT_END.search(text) or _TRAILING.search(text)
    if found is None or not all(map(_may_be_unit, _WORD.findall(found[1].lower()))):
        return text
    # An answer that is nothing but words is one.
    return text[: found.start()] if text[: found.start()].strip() else text


def _may_be_unit(word: str) -> bool:
    """Whether a word may be left out; two letters are variables unless they are known."""
    if _NOT_UNITS.fullmatch(word):
        return False
    return len(word) > 2 or not word.isascii() or word in _CANONICAL or word in _SHORT
