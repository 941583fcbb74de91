"""What two answers say that comparing them as symbols would drop, and whether it differs."""

import re

from cbench_server.evaluators.math.units import canonical_unit, is_unit

_COMMAND = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+")
_ATTACHED = re.compile(r"(?<=\d)([A-Za-z])(?![A-Za-z0-9])")
_ONE_LETTER_UNIT = re.compile(r"([\d.,]*\d)([A-Za-z])")
_LETTERS = re.compile(r"[A-Za-z]+")
_WORD = 3
_MIXED = re.compile(r"(\d) +(?=\d+ */|\\frac)")
_THOUSANDS = re.compile(r"(?<!\d)(?<!\d )\d{1,3}(?: \d{3})+(?!\d)")
_GAP = re.compile(r"\d +\d")
_NUMBER_MARK = re.compile(r"(?<=\d)(?:_\s*\{?\s*\w+\s*\}?|'+|\^\s*\{?\s*T\s*\}?)$")
_BRACKETS = {"\\{": "set", "(": "tuple", "[": "tuple"}
_CLOSED_BY = {"\\{": "\\}", "(": ")", "[": "]"}


def contradict(gold: str, given: str) -> bool:
    """Whether two answers in plain notation differ in what math-verify does not look at.

    It drops units, even those next to a digit, subscripts and primes, takes
    `1 2` for a sum, A for a and a point for a set.
    """
    return (
        _has_gap(gold) != _has_gap(given)
        or _kinds_differ(gold, given)
        or _cases_differ(gold, given)
        or _marks_differ(gold, given)
        or not _has_letters_of(gold, given)
        or not _has_letters_of(given, gold)
    )


def in_order(gold: str, given: str) -> tuple[str, str]:
    """Give a bare list the brackets that the other answer has, so that its order counts."""
    kinds = _kind(gold), _kind(given)
    if kinds == ("list", "tuple"):
        return f"({gold})", given
    if kinds == ("tuple", "list"):
        return gold, f"({given})"
    return gold, given


def with_unit_apart(text: str, other: str) -> str:
    """Write 3m as 3 m where the other answer spells that unit out."""
    found = _ONE_LETTER_UNIT.fullmatch(text)
    if found is None or canonical_unit(f" {found[2]}") not in _units(other):
        return text
    return f"{found[1]} {found[2]}"


def _units(text: str) -> set[str]:
    words = _LETTERS.findall(_COMMAND.sub(" ", text))
    return {unit for word in words if (unit := canonical_unit(f" {word}"))}


def _has_gap(text: str) -> bool:
    """Whether digits stand apart that are neither thousands nor a mixed number."""
    return bool(_GAP.search(_THOUSANDS.sub("0", _MIXED.sub(r"\1+", text))))


def _kind(text: str) -> str:
    for opening, kind in _BRACKETS.items():
        if text.startswith(opening):
            inner = text[len(opening) : -len(_CLOSED_BY[opening])]
            is_one = text[-1:] in ")]}" and not set("()[]") & set(inner)
            return kind if is_one and "," in inner else ""
    return "list" if "," in text and not set("()[]{}") & set(text) else ""


def _kinds_differ(gold: str, given: str) -> bool:
    kinds = {_kind(gold), _kind(given)}
    if kinds == {"list", "tuple"}:
        one, other = _parts(gold), _parts(given)
        return one != other and sorted(one) == sorted(other)
    return kinds == {"set", "tuple"}


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.strip("()[]").split(",")]


def _cases_differ(gold: str, given: str) -> bool:
    """Whether a variable is a capital in one answer and a small letter in the other."""
    one, other = _variables(gold), _variables(given)
    return any(
        letter.swapcase() in other and letter not in other and letter.swapcase() not in one
        for letter in one
    )


def _variables(text: str) -> set[str]:
    """Return the letters of a text but for those of words."""
    parts = _LETTERS.findall(_COMMAND.sub(" ", text))
    return {letter for part in parts if _is_variables(part) for letter in part}


def _is_variables(part: str) -> bool:
    return len(part) == 1 or (len(part) < _WORD and not is_unit(part))


def _marks_differ(gold: str, given: str) -> bool:
    """Whether numbers have another base, prime or power, where each has one."""
    one, other = _mark(gold), _mark(given)
    if one == other:
        return False
    if one and other:
        return True
    marked, bare = (gold, given) if one else (given, gold)
    # A base may go unsaid, but then the digits are the same.
    return _NUMBER_MARK.sub("", marked).strip() != bare.strip() or (one or other).startswith("^")


def _mark(text: str) -> str:
    found = _NUMBER_MARK.search(text)
    return re.sub(r"[\s{}]", "", found[0]) if found else ""


def _has_letters_of(one: str, other: str) -> bool:
    """Whether a letter next to a digit, as in 3m, is in the other answer too, or its unit."""
    attached = set(_ATTACHED.findall(_COMMAND.sub(" ", one)))
    if not attached:
        return True
    words = _LETTERS.findall(_COMMAND.sub(" ", other))
    units = _units(other)
    letters = {letter for word in words if _is_variables(word) for letter in word}
    return all(letter in letters or canonical_unit(f" {letter}") in units for letter in attached)
