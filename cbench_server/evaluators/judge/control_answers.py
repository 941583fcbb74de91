"""Answers made from references by program: the same in another form, or certainly wrong."""

import random
import re
from collections.abc import Sequence

from cbench_server.texts.answers import normalize_answer

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_MONTH = "|".join(_MONTHS)
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}}) ({_MONTH})\b(?: (\d{{4}}))?", re.IGNORECASE)
_MONTH_DAY = re.compile(rf"\b({_MONTH}) (\d{{1,2}})\b(?!\d)(?:, (\d{{4}}))?", re.IGNORECASE)
_ISO = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,9}(?![\w.,]\d|\w)")
_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
_SMALL_WORD = re.compile(rf"\b({'|'.join(_SMALL)})\b", re.IGNORECASE)
_PARTS = re.compile(r",? and |, ")
_YES_NO = ("yes", "no")


def type_of(answer: str) -> str:
    """Name the kind of thing that an answer is, so that another of its kind can be found."""
    words = answer.split()
    if normalize_answer(answer) in _YES_NO:
        return "yes or no"
    if len(words) > 12:
        # A number among many words can change without making them wrong.
        return "passage"
    if any(pattern.search(answer) for pattern in (_DAY_MONTH, _MONTH_DAY, _ISO)):
        return "date"
    if any(month.lower() in answer.lower().split() for month in _MONTHS):
        return "date"
    if _NUMBER.search(answer) or _SMALL_WORD.search(answer):
        return "number"
    if words and all(word[:1].isupper() for word in words if len(word) > 3):
        return "name"
    return "phrase"


def other_form(answer: str) -> str | None:
    """Say the same otherwise: a date or number in another form, a list in another order."""
    if match := _DAY_MONTH.search(answer):
        year = f", {match[3]}" if match[3] else ""
        return f"{answer[: match.start()]}{match[2]} {match[1]}{year}{answer[match.end() :]}"
    if match := _MONTH_DAY.search(answer):
        year = f" {match[3]}" if match[3] else ""
        return f"{answer[: match.start()]}{match[2]} {match[1]}{year}{answer[match.end() :]}"
    if match := _ISO.search(answer):
        month = int(match[2])
        if 1 <= month <= 12:
            said = f"{int(match[3])} {_MONTHS[month - 1]} {match[1]}"
            return f"{answer[: match.start()]}{said}{answer[match.end() :]}"
    parts = _PARTS.split(answer)
    if len(parts) > 1 and all(0 < len(part.split()) < 6 for part in parts):
        return ", ".join(reversed(parts))
    if match := _SMALL_WORD.search(answer):
        number = _SMALL.index(match[1].lower())
        return f"{answer[: match.start()]}{number}{answer[match.end() :]}"
    if (match := _NUMBER.search(answer)) and int(match[0]) < len(_SMALL):
        return f"{answer[: match.start()]}{_SMALL[int(match[0])]}{answer[match.end() :]}"
    return None


def shifted(answer: str, draw: random.Random) -> str | None:
    """Change the first number, day or month in an answer, so that it is wrong."""
    by = draw.choice((2, 3, 5, 7))
    if match := _SMALL_WORD.search(answer):
        other = _SMALL[(_SMALL.index(match[1].lower()) + by) % len(_SMALL)]
        return f"{answer[: match.start()]}{other}{answer[match.end() :]}"
    if match := _NUMBER.search(answer):
        number = int(match[0])
        # A shift of a day or a year that a generous judge might forgive proves nothing.
        is_year = 1000 <= number <= 2100
        other_number = number + (by * 3 if is_year else by if number < 25 else by + number // 3)
        return f"{answer[: match.start()]}{other_number}{answer[match.end() :]}"
    for place, month in enumerate(_MONTHS):
        if found := re.search(rf"\b{month}\b", answer, re.IGNORECASE):
            other = _MONTHS[(place + by) % 12]
            return f"{answer[: found.start()]}{other}{answer[found.end() :]}"
    return None


def opposite(answer: str) -> str:
    """Say the contrary."""
    plain = normalize_answer(answer)
    if plain in _YES_NO:
        return "No." if plain == "yes" else "Yes."
    return f"Certainly not {answer}; that is exactly what it was not."


def is_apart(answer: str, accepted: Sequence[str]) -> bool:
    """Whether an answer neither is, nor contains, nor is contained in one that is accepted."""
    words = normalize_answer(answer).split()
    if not words:
        return False
    for text in accepted:
        others = normalize_answer(text).split()
        shorter, longer = sorted((words, others), key=len)
        if set(shorter) <= set(longer):
            return False
    return True
