"""Ratings: the number on a scale that a judge's reply states.

A reply that states none, or several, has no rating; so has one that only
repeats the scale. Every pattern runs in time linear in a reply, whose runs of
spaces are single.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cbench_server.evaluators.judge.named_verdicts import RATING, under_a_name
from cbench_server.evaluators.judge.replies import ends_of, plain

_NUMBER = r"(?<![\w.,-])(\d{1,3}(?:\.\d{1,3})?)(?!\w|[.,]\d)"
_OUT_OF = r" ?(?:/|out of|of|von|sur|de|di|su|из) ?(\d{1,3})(?!\w)"
_AFTER = r"(?:stars?|points?|because|since|overall|here|for|as|based|due)\b"
# "3 out of 5 facts" counts facts.
_ON_SCALE = re.compile(rf"{_NUMBER}{_OUT_OF}(?! (?!{_AFTER})[^\W\d])", re.IGNORECASE)
_STATED = re.compile(
    r"\b(?:rating|score|grade|verdict|overall|rate (?:it|this|the response)"
    r"|(?:give|assign)(?: it| this)?)\b"
    r"(?: \((?:out of|from)? ?[\d -–]{1,7}\))?"
    r"(?: (?:is|of|would be|as|a|at|the|response|it)){0,4} ?[:=\-–]? ?(?:a )?"
    rf"{_NUMBER}(?:{_OUT_OF})?",
    re.IGNORECASE,
)
# A number that counts something ("2 errors") is not a rating.
_BY_ITSELF = re.compile(rf"{_NUMBER}(?= ?(?:$|[^\w\s]|\n|{_AFTER}|[分点點점]))")
# Where scripts without spaces meet a number.
_DIGIT_EDGE = re.compile(
    r"(?<=\d)(?=[\u3040-\u9fff\uac00-\ud7af])|(?<=[\u3040-\u9fff\uac00-\ud7af])(?=\d)"
)
_FINAL = re.compile(r"\b(?:final|finally|overall|reflection|revised|total)\b[^\n]{0,40}$", re.I)
_LISTED = re.compile(r"^(?:[-•] ?)?(\d{1,2}) ?[:.)=\-–] ?(?=\S)(.{0,200})", re.MULTILINE)
_UNDECIDED = re.compile(
    r"(?<![\w.])\d{1,2} ?(?:or|to|and|[-–~]) ?\d{1,2}(?![\w.]|[.,]\d)", re.IGNORECASE
)
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Scale:
    """The numbers a judge may give, and what they are said to mean."""

    low: int = 1
    high: int = 5
    meanings: Mapping[int, str] = field(default_factory=dict)

    def share(self, rating: float) -> float:
        """Return a rating as a number from 0 to 1."""
        return (rating - self.low) / (self.high - self.low)

    def valid(self, number: str, out_of: str = "") -> float | None:
        """Return a number as a rating; None if it is none on this scale."""
        rating = float(number)
        is_on_scale = self.low <= rating <= self.high and out_of in ("", str(self.high))
        return rating if is_on_scale else None


FIVE = Scale()


def parse_rating(reply: str, scale: Scale = FIVE) -> float | None:
    """Return the rating that the reply states; None if it states none, or several.

    The number meant counts, not the first one: "Out of 5, I give 2" is 2,
    "4.5/5" is 4.5, "10" is no rating from 1 to 5, and neither is the scale itself.
    """
    reply = ends_of(reply)
    if (named := under_a_name(reply, RATING)) is not None:
        reply = named
    text = _without_scale(_DIGIT_EDGE.sub(" ", plain(reply)), scale)
    first = text.partition("\n")[0]
    if _UNDECIDED.search(first):
        return None
    if stated := [*_STATED.finditer(text)]:
        return _the_one(stated, text, scale)
    if not _ON_SCALE.search(first) and (leading := _BY_ITSELF.match(text)):
        return scale.valid(leading[1])
    if scaled := [*_ON_SCALE.finditer(text)]:
        return _the_one(scaled, text, scale)
    numbers = set(_BY_ITSELF.findall(text))
    if numbers:
        return scale.valid(numbers.pop()) if len(numbers) == 1 else None
    words = {word.lower() for word in _WORD.findall(text)}
    if len(words) != 1:
        return None
    return scale.valid(str(_WORDS.index(words.pop()) + 1))


def _the_one(stated: Sequence[re.Match[str]], text: str, scale: Scale) -> float | None:
    """Return the rating that all of these state; of several, the one that is called final."""
    if len({match[1] for match in stated}) > 1:
        stated = [
            match
            for match in stated
            if _FINAL.search(text, max(0, match.start() - 50), match.start(1))
        ]
    numbers = {match.groups("") for match in stated}
    return scale.valid(*numbers.pop()) if len({number for number, _ in numbers}) == 1 else None


_BRACKETED = (re.compile(r"\[\[(\d{1,3}\.?\d{0,3})\]\]"), re.compile(r"\[(\d{1,3}\.?\d{0,3})\]"))


def parse_bracketed(reply: str, scale: Scale = FIVE) -> float | None:
    """Return the first number in double brackets, failing that in single ones, as FastChat does.

    A reply without either is read as `parse_rating` does.
    """
    for pattern in _BRACKETED:
        if found := pattern.search(reply):
            return scale.valid(found[1])
    return parse_rating(reply, scale)


def _without_scale(text: str, scale: Scale) -> str:
    """Leave out where the reply repeats the scale instead of using it."""
    high = f"(?:{scale.high}|{_WORDS[scale.high - 1]})"
    mention = re.compile(
        rf"(?:on )?(?:a |the )?(?:scale )?(?:of|from|between)? ?\b{scale.low} ?"
        rf"(?:-|–|to|and|through) ?{scale.high}\b|^ ?out of {high}\b|\b{high}[- ]point\b",
        re.IGNORECASE,
    )
    text = mention.sub(" ", text).strip()
    every = r"[ ,/|]{1,3}".join(str(number) for number in range(scale.low, scale.high + 1))
    meaning = r" ?(?:[:=(]|(?:is|being|means|for)\b)"
    both = rf"^.{{0,80}}\b{scale.low}{meaning}.{{0,400}}\b{scale.high}{meaning}.*$"
    text = re.sub(rf"\b{every}\b|{both}", " ", text, flags=re.MULTILINE).strip()
    listed = _LISTED.findall(text)
    numbers = {number for number, _ in listed}
    if len(numbers) > 1:
        return _LISTED.sub("", text).strip()
    if len(listed) == 1 and _repeats_first(listed[0][0], listed[0][1], scale):
        # Alone it may be a rating or the beginning of the whole scale.
        return _LISTED.sub("", text).strip()
    return text


def _repeats_first(number: str, said: str, scale: Scale) -> bool:
    meaning = scale.meanings.get(scale.low, "")
    return bool(meaning) and number == str(scale.low) and _same_words(said, meaning)


def _same_words(said: str, meaning: str) -> bool:
    spoken, meant = re.findall(r"\w+", said.lower()), re.findall(r"\w+", meaning.lower())
    # What a limit of tokens cut off is a repetition, too.
    return len(spoken) > 1 and spoken == meant[: len(spoken)]
