"""The inference labels that a piece of text names.

The families entailment/contradiction and supports/refutes are one: a premise
supports what it entails, and refutes what it contradicts.
"""

import re
from dataclasses import dataclass
from typing import Literal

Label = Literal["entailment", "contradiction", "not mentioned"]
Kind = Literal["name", "absence", "truth", "reply"]
"""How plainly words name a label, the plainest first: by its name, as something that was
not found, as true or false, as a mere yes or no."""

_OPPOSITE: dict[Label, Label] = {"entailment": "contradiction", "contradiction": "entailment"}

_NAMES: tuple[tuple[Label, Kind, str], ...] = (
    (
        "not mentioned",
        "name",
        r"not (?:\w+ ){0,2}?mention(?:s|ed|ing)?"
        r"|(?:not (?:have )?(?:enough|sufficient)|insufficient) (?:\w+ )?"
        r"(?:info(?:rmation)?|evidence)"
        r"|notmentioned|notenoughinfo|nei|neutral|unknown|neither",
    ),
    (
        "not mentioned",
        "absence",
        r"not (?:\w+ ){0,2}?(?:address(?:ed)?|discuss(?:ed)?|specif(?:y|ied)|cover(?:ed)?|stated)"
        r"|no (?:\w+ ){0,2}?(?:info(?:rmation)?|evidence|mention)"
        r"|can not be (?:determined|verified|inferred|concluded)"
        r"|undetermined|inconclusive|unverifiable",
    ),
    ("entailment", "name", r"entail(?:s|ed|ing|ment)?|support(?:s|ed|ing|ive)?"),
    (
        "contradiction",
        "name",
        r"contradict(?:s|ed|ing|ion|ions|ory)?|refut(?:e|es|ed|ing|ation)",
    ),
    ("entailment", "truth", r"true"),
    ("contradiction", "truth", r"false|untrue"),
    ("entailment", "reply", r"yes"),
    # "no" before a noun denies the noun, and answers nothing.
    ("contradiction", "reply", r"no(?= *(?:[,:.;!?\n]|$))"),
)
_ANY_NAME = re.compile(
    r"\b(?:" + "|".join(f"(?P<n{i}>{words})" for i, (_, _, words) in enumerate(_NAMES)) + r")\b"
)

_NEGATORS = frozenset(
    ("not", "no", "never", "nor", "neither", "without", "nothing", "non", "fail", "fails", "failed")
)
_LOOK_BACK = 200  # characters
_REACH = 6  # words: "not provide any direct evidence that would support"
# What follows is no longer denied by a "not" that stands before.
_FRESH_START = re.compile(
    r"[,:]|\b(?:but|because|since|therefore|thus|hence|so|although|though|while|and it|and the)\b"
)
# What follows gives reasons and reservations; the verdict stands before.
_ASIDE = re.compile(r"\b(?:because|since|although|though|which|given that)\b")
_LIST_COMMA = re.compile(r", *(?:or |nor )?$")


@dataclass(frozen=True, slots=True)
class Mention:
    """A label named in a text; denied if the text says that it is not the one."""

    label: Label
    kind: Kind
    is_denied: bool = False


def plain(text: str) -> str:
    """Lower the text and take out what hides words: quotes, markup, contractions."""
    text = text.lower().replace("’", "'")
    text = text.replace("can't", "can not").replace("cannot", "can not").replace("n't", " not")
    text = re.sub(r"(?<=\d)\.(?=\d)", "", text)
    text = re.sub(r"[^\w\n,:.;!?=]|_", " ", text)
    text = re.sub(r"\bnot (?:only|just|merely|simply)\b", " ", text)
    return re.sub(r"[^\S\n]+", " ", text).strip()


def exact_mention(sentence: str) -> Mention | None:
    """Return the mention that a plain sentence consists of, if it is nothing else."""
    words = sentence.strip(" ,:.;!?=\n")
    found = _ANY_NAME.fullmatch(words)
    return _mention(found, "") if found else None


def mentions(sentence: str) -> list[Mention]:
    """Return the labels that a plain sentence names, in their order.

    Those in a clause of reasons or reservations count only where the sentence
    names none before.
    """
    aside = _ASIDE.search(sentence, 1)
    main = _all_mentions(sentence[: aside.start()] if aside else sentence)
    if aside and all(one.is_denied for one in main):
        return _all_mentions(sentence)
    return main


def _all_mentions(text: str) -> list[Mention]:
    return [
        _mention(found, text[max(0, found.start() - _LOOK_BACK) : found.start()])
        for found in _ANY_NAME.finditer(text)
    ]


def _mention(found: "re.Match[str]", before: str) -> Mention:
    label, kind, _ = _NAMES[int((found.lastgroup or "n0")[1:])]
    if not _is_denied(before):
        return Mention(label, kind)
    if kind == "truth":
        return Mention(_OPPOSITE[label], kind)
    return Mention(label, kind, is_denied=True)


def _is_denied(before: str) -> bool:
    # Of a plain text, in which no two spaces follow each other, these hold ", nor ".
    before = before[:-6] + _LIST_COMMA.sub(" ", before[-6:])
    # Two words more than count, for a fresh start has up to two.
    head, *tail = before.rsplit(None, _REACH + 2) or [""]
    if len(tail) == _REACH + 2:
        before = before[len(head) :]
    words = _FRESH_START.split(before)[-1].split()[-_REACH:]
    if words[-2:] in (["rather", "than"], ["instead", "of"]):
        return True
    return not _NEGATORS.isdisjoint(words)
