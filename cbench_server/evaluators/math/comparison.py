"""Whether two answers are the same: by their text, as numbers, and at last as symbols."""

import re
from dataclasses import dataclass

from cbench_server.evaluators.math.contradictions import contradict, in_order, with_unit_apart
from cbench_server.evaluators.math.numbers import (
    read_clock,
    read_decimal_comma,
    read_number,
    same_clock,
    same_number,
)
from cbench_server.evaluators.math.program import compare_symbols
from cbench_server.evaluators.math.text import as_latex, plain, unwrapped
from cbench_server.evaluators.math.units import without_unit

# Longer answers are compared as text only.
_MAX_LENGTH = 1_000

_EQUALS = re.compile(r"(?<![<>!\\:])=")
_ALMOST = re.compile(r"\\approx(?![A-Za-z])|≈|~=")
_SEVERAL = re.compile(r",(?!\d{3}(?!\d))|;|\b(?:and|or)\b")
_NAME = re.compile(
    r"(?:\\(?:angle|triangle|overline|vec|mathbf|theta|alpha|beta|lambda|mu|phi)\b|[^\W\d]|[\s'(),_{}^:]|\d)+"
)
_BASE = re.compile(r"([0-9A-Fa-f.]+)_\{?(\d{1,2})\}?")
_COMMANDS = re.compile(
    r"\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+|(?i:\b(?:sqrt|and|or|inf|infinity|gcd|lcm|pi|sin|cos|tan|cot|log|exp)\b)"
)
# ABCD is a figure, Abcd is a word.
_WORD = re.compile(r"(?![A-Z]+(?![^\W\d_]))[^\W\d_]{4,}")
_PHRASE = re.compile(r"[^\W\d_]{3,}[^\W_]*(?:[\s,'’-]+[^\W_]+)*")
_SPACES = re.compile(r"(?<!\d)\s+|\s+(?!\d)")
_CHOICE = re.compile(r"\(?([A-Za-z])\)?")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on two answers, how it was reached, and why symbols could not tell."""

    equal: bool
    decided_by: str
    reason: str = ""

    @property
    def is_final(self) -> bool:
        """Whether to look no further: they are equal, or the limits were reached."""
        return self.equal or (self.decided_by == "symbols" and bool(self.reason))


def equivalent(gold: str, given: str) -> Judgement:
    """Compare two answers, the cheapest way that decides.

    What is said to be about something else, as in `2/3 \\approx 0.67`, is both.
    """
    judgement = Judgement(False, "text")
    for expected in _alternatives(gold):
        for found in _alternatives(given):
            judgement = _judge(expected, found)
            if judgement.is_final:
                return judgement
    return judgement


def _alternatives(text: str) -> list[str]:
    parts = _ALMOST.split(unwrapped(text))
    if len(parts) == 1 or ("=" not in parts[0] and _NAME.fullmatch(plain(parts[0]))):
        return [parts[-1]]
    return [parts[0], parts[-1]]


def _judge(gold: str, given: str) -> Judgement:
    gold, given = unwrapped(gold), unwrapped(given)
    if len(gold) > _MAX_LENGTH or len(given) > _MAX_LENGTH:
        return Judgement(gold == given, "text", f"more than {_MAX_LENGTH:,} characters")
    expected, found = plain(gold), plain(given)
    if not expected or not found:
        return Judgement(expected == found, "text")
    if _spelling(expected) == _spelling(found):
        return Judgement(True, "text")
    expected, found = with_unit_apart(expected, found), with_unit_apart(found, expected)
    if (same := _same_number(*_values(expected, found))) is not None:
        return Judgement(same, "numbers")
    if _in_other_bases(expected, found):
        return Judgement(False, "numbers")
    if _has_words(expected) or _has_words(found) or contradict(expected, found):
        return Judgement(False, "text")
    gold, given = in_order(without_unit(gold), without_unit(given))
    verdict = compare_symbols(as_latex(gold), as_latex(given))
    return Judgement(verdict.equal, "symbols", verdict.reason)


def differ(gold: str, given: str) -> bool:
    """Whether two answers are numbers, with their units, that differ, or contradict each other."""
    expected, found = plain(unwrapped(gold)), plain(unwrapped(given))
    if _spelling(expected) == _spelling(found):
        return False
    expected, found = with_unit_apart(expected, found), with_unit_apart(found, expected)
    same = _same_number(*_values(expected, found))
    return contradict(expected, found) if same is None else not same


def _same_number(expected: str, found: str) -> bool | None:
    """Compare as numbers or times; None if they are not both that."""
    gold, given = read_number(expected), read_number(found)
    if gold and given:
        return same_number(gold, given)
    times = read_clock(expected), read_clock(found)
    if times[0] and times[1]:
        return same_clock(times[0], times[1])
    gold, given = gold or read_decimal_comma(expected), given or read_decimal_comma(found)
    # Written with a comma they may be lists, so only agreement counts.
    return True if gold and given and same_number(gold, given) else None


def _values(expected: str, found: str) -> tuple[str, str]:
    """Drop what an answer is said to be equal to: `x = 5` is 5, unless both name something else."""
    name, value = _assigned(expected)
    other, given = _assigned(found)
    if name and other and _spelling(name) != _spelling(other):
        return expected, found
    return value, given


def _assigned(text: str) -> tuple[str, str]:
    name, *values = _EQUALS.split(text)
    if not values or _SEVERAL.search(" ".join(values)):
        return "", text
    if len(values) > 1 or _NAME.fullmatch(name):
        return name, unwrapped(values[-1])
    return "", text


def _spelling(text: str) -> str:
    """Return what makes a notation what it is: no spaces, no needless braces, no case in words."""
    text = re.sub(r"\{(\w)\}", r"\1", _SPACES.sub("", text)).strip("$")
    if choice := _CHOICE.fullmatch(text):
        return choice[1]
    return (
        text.casefold()
        if _WORD.search(_COMMANDS.sub("", text)) or _PHRASE.fullmatch(text)
        else text
    )


def _has_words(text: str) -> bool:
    """Whether a text says something in words, which as symbols would be products of letters."""
    if _PHRASE.fullmatch(text) and not _COMMANDS.search(text):
        return True
    return bool(_WORD.search(_COMMANDS.sub(" ", without_unit(text))))


def _in_other_bases(expected: str, found: str) -> bool:
    """Whether both name the base they are written in, and it is not the same."""
    gold = _BASE.fullmatch(expected.replace(" ", ""))
    given = _BASE.fullmatch(found.replace(" ", ""))
    return gold is not None and given is not None and gold.groups() != given.groups()
