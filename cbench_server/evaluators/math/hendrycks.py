"""Answers compared as the MATH dataset's own grader does: as LaTeX text, after a little tidying."""

import re

from cbench_server.evaluators.math.units import canonical_unit
from cbench_server.texts.boxes import last_boxes

_UNITS = "\\text{ "
_TIDIED = (
    ("\n", ""),
    ("\\!", ""),
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    ("\\left", ""),
    ("\\right", ""),
    ("^{\\circ}", ""),
    ("^\\circ", ""),
    ("\\$", ""),
)
_NUMBER = re.compile(r"\d+")
_POWER = re.compile(r"\^\s*(?:\{[^{}]*\}|-?\d)")
_SPLIT_DIGITS = re.compile(r"(\d)\s+(?=\d)")
_THOUSANDS = re.compile(r"(?<!\d)(?<!\d )\d{1,3}(?: \d{3})+(?!\d)")
# The digit that a command or a power takes is no part of what follows.
_ARGUMENT = re.compile(r"((?:\\frac *\d?|\\sqrt|[_^]) *)\d +(?=\d)")


def given_answer(response: str) -> str:
    """Return the last box; failing that, what is between the first dollar and the last, or all."""
    if boxes := last_boxes(response):
        return boxes[-1].content
    first, last = response.find("$"), response.rfind("$")
    return response[first + 1 : last] if first < last else response


def is_equivalent(gold: str, given: str) -> bool:
    """Whether two answers are the same text once tidied, and nothing says that they differ.

    The official rule drops units, names and spaces. Where both answers have
    one and it is not the same, they are not taken for equal here.
    """
    try:
        is_same = tidied(gold) == tidied(given)
    except _Untidy:
        return gold == given
    return is_same and (gold == given or not _is_contradicted(gold, given))


class _Untidy(Exception):
    """An answer is of a form that the rules do not take; it is compared as it stands."""


def tidied(answer: str) -> str:
    """Return an answer in the form in which the official grader compares it."""
    for old, new in _TIDIED:
        answer = answer.replace(old, new)
    if answer.count(_UNITS) > 1:
        raise _Untidy
    answer = answer.partition(_UNITS)[0]
    for old, new in (("\\%", ""), (" .", " 0."), ("{.", "{0.")):
        answer = answer.replace(old, new)
    if answer.startswith("."):
        answer = f"0{answer}"
    if answer.count("=") == 1 and answer.index("=") <= 2:
        answer = answer.partition("=")[2]
    answer = _with_braces(_roots(answer).replace(" ", ""))
    return "\\frac{1}{2}" if answer == "0.5" else _as_fraction(answer)


def _roots(answer: str) -> str:
    """Put the character after each root into braces."""
    head, *parts = answer.split("\\sqrt")
    if "" in parts:
        raise _Untidy
    return head + "".join(
        f"\\sqrt{part}" if part[0] == "{" else f"\\sqrt{{{part[0]}}}{part[1:]}" for part in parts
    )


def _with_braces(answer: str) -> str:
    """Put the two characters after each fraction into braces, unless the first is one."""
    head, *parts = answer.split("\\frac")
    if "" in parts:
        raise _Untidy
    if any(len(part) == 1 and part != "{" for part in parts):
        return answer
    written = [head]
    for part in parts:
        if part[0] == "{":
            written.append(f"\\frac{part}")
        else:
            under = part[1] if part[1] == "{" else f"{{{part[1]}}}"
            written.append(f"\\frac{{{part[0]}}}{under}{part[2:]}")
    return "".join(written)


def _as_fraction(answer: str) -> str:
    """Write two whole numbers with a slash between them as a fraction."""
    over, slash, under = answer.partition("/")
    if not slash or not (_is_whole(over) and _is_whole(under)):
        return answer
    return f"\\frac{{{over}}}{{{under}}}"


def _is_whole(text: str) -> bool:
    return bool(re.fullmatch(r"0|-?[1-9][0-9]{0,4000}", text))


def _is_contradicted(gold: str, given: str) -> bool:
    """Whether two answers differ in something that tidying drops from both."""
    return (
        _differ(_unit(gold), _unit(given))
        or _differ(_name(gold), _name(given))
        or (_has_only_unit(gold, given) and _dropped(gold) != _dropped(given))
        or _after_unit(gold) != _after_unit(given)
        or _spaced(gold) != _spaced(given)
    )


def _differ(one: str, other: str) -> bool:
    return bool(one and other and one != other)


def _unit(answer: str) -> str:
    if "\\$" in answer and _UNITS not in answer:
        return "dollar"
    return canonical_unit(f" {_dropped(answer)}") or ""


def _after_unit(answer: str) -> list[str]:
    """Return the numbers after what is taken for a unit, but for its power: `1\\text{ or }2`."""
    rest = answer.partition(_UNITS)[2].partition("}")[2]
    return _NUMBER.findall(_POWER.sub("", rest))


def _name(answer: str) -> str:
    """Return the name before an answer that tidying drops; a longer one is a part of it."""
    for old, new in _TIDIED:
        answer = answer.replace(old, new)
    name, _, rest = answer.partition(_UNITS)[0].partition("=")
    return name.strip() if rest and "=" not in rest and len(name) <= 2 else ""


def _has_only_unit(*answers: str) -> bool:
    """Whether nothing is left of an answer without what is taken for its unit."""
    return any(_UNITS in answer and not answer.partition(_UNITS)[0].strip() for answer in answers)


def _dropped(answer: str) -> str:
    return answer.partition(_UNITS)[2].partition("}")[0].strip()


def _spaced(answer: str) -> list[str]:
    """Return the digits before a space and another digit, which would become one number."""
    for old, new in _TIDIED:
        answer = answer.replace(old, new)
    answer = _ARGUMENT.sub(r"\1x", _THOUSANDS.sub("", answer.partition(_UNITS)[0]))
    return _SPLIT_DIGITS.findall(answer)
