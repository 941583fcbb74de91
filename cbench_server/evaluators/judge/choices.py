"""Choices: which of two responses a judge's reply prefers."""

import re
from typing import Literal

from cbench_server.evaluators.judge.named_verdicts import CHOICE, under_a_name
from cbench_server.evaluators.judge.replies import ends_of, plain

Choice = Literal["first", "second", "tie"]

_OF_TWO = r"(?:response |answer |output |assistant )?"
_PRAISED = (
    r" (?:wins|is (?:(?!not |no |never |hardly )\w+ )?(?:the )?"
    r"(?:better|best|winner|winning|stronger|superior|preferable|preferred))\b"
)
_STATED = re.compile(
    r"[^\w\n]{0,9}(?:my |the |final |overall ){0,3}"
    r"(?:verdict|answer|choice|winner|decision|preference"
    r"|(?:better|best|preferred|winning)(?: response| answer| output| one)?)"
    rf" ?(?:is|:|=) ?[^\w\n]{{0,9}}{_OF_TWO}(A|B|C|tie|neither)\b"
    r"(?! ?(?:and|or|/|,) ?[ABC]\b)",
    re.IGNORECASE,
)
# Alone on its line, or with a reason behind it; "A: ..." may be the first of two remarks.
_LEADING = re.compile(
    rf"[^\w\n]{{0,9}}{_OF_TWO}(A|B|C|tie|neither)\b"
    rf"(?=[^\w\n]{{0,9}}$|[.;!)] |{_PRAISED}|,? (?:because|since|as)\b)",
    re.IGNORECASE,
)
_NEITHER = re.compile(r"[^\w\n]{0,9}(?:a )?(?:tie|neither)\b", re.IGNORECASE)
_BRACKETED = re.compile(r"\[\[([ABC])\]\]")
_NAMED = re.compile(
    rf"\b(?:(?:[Rr]esponse|[Aa]nswer|[Oo]utput|[Aa]ssistant) ([AB])|(?<![\w.] )([AB])){_PRAISED}"
)
_CHOICES: dict[str, Choice] = {"A": "first", "B": "second", "C": "tie"}


def parse_choice(reply: str) -> Choice | None:
    """Return which of two responses the reply prefers; None if it does not say."""
    reply = ends_of(reply)
    if bracketed := {*_BRACKETED.findall(reply)}:
        return _CHOICES[bracketed.pop()] if len(bracketed) == 1 else None
    if (named := under_a_name(reply, CHOICE)) is not None:
        reply = named
    lines = plain(reply).split("\n")
    for pattern in (_STATED, _LEADING):
        found = {match[1] for line in lines if (match := pattern.match(line))}
        choices = {_CHOICES.get(said.upper(), "tie") for said in found}
        if choices:
            return choices.pop() if len(choices) == 1 else None
    if _NEITHER.match(lines[0]) or _NEITHER.match(lines[-1]):
        return "tie"
    praised = {"".join(match) for match in _NAMED.findall("\n".join(lines))}
    return _CHOICES[praised.pop()] if len(praised) == 1 else None


_IDENTIFIER = re.compile(r"\W*([mM])\b")


def parse_identifier(reply: str) -> Choice | None:
    """Return the choice of AlpacaEval's prompt, `m` for the first and `M` for the second.

    A reply with neither is read as `parse_choice` does.
    """
    if found := _IDENTIFIER.match(ends_of(reply)):
        return "first" if found[1] == "m" else "second"
    return parse_choice(reply)
