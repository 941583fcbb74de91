"""Verdicts of a judge: the rating, the yes or no, or the choice that its reply states.

A reply that states none, or several, has no verdict; so has one that only
repeats the scale or the question. Replies are read up to a bounded length, and
every pattern runs in time linear in it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cbench_server.limits import MAX_VERDICT_HEAD, MAX_VERDICT_TAIL

Choice = Literal["first", "second", "tie"]

_HEAD, _TAIL = MAX_VERDICT_HEAD, MAX_VERDICT_TAIL
_MARKUP = re.compile(r"[*_`#$\"“”]+|\\boxed|[{}\[\]]|</?[a-z]{1,12}>")
_SPACES = re.compile(r"[^\S\n]+")
_BREAKS = re.compile(r" ?\n[ \n]*")


def _plain(reply: str) -> str:
    """Return the reply without markup, with single spaces; of a very long one, both ends."""
    if len(reply) > _HEAD + _TAIL:
        reply = f"{reply[:_HEAD]}\n{reply[-_TAIL:]}"
    return _BREAKS.sub("\n", _SPACES.sub(" ", _MARKUP.sub("", reply))).strip()


# Ratings. Since runs of spaces are single by now, none of the patterns can wander.

_NUMBER = r"(?<![\w.,-])(\d{1,3}(?:\.\d{1,3})?)(?!\w|[.,]\d)"
_OUT_OF = r" ?(?:/|out of) ?(\d{1,3})(?!\w)"
_ON_SCALE = re.compile(_NUMBER + _OUT_OF, re.IGNORECASE)
_STATED = re.compile(
    r"\b(?:rating|score|grade|verdict|rate (?:it|this|the response)"
    r"|(?:give|assign)(?: it| this)?)\b"
    r"(?: \((?:out of|from)? ?[\d -–]{1,7}\))?"
    r"(?: (?:is|of|would be|as|a|at|the|response|it)){0,4} ?[:=\-–]? ?(?:a )?"
    rf"{_NUMBER}(?:{_OUT_OF})?",
    re.IGNORECASE,
)
# A number that counts something ("2 errors") is not a rating.
_BY_ITSELF = re.compile(
    rf"{_NUMBER}(?= ?(?:$|[^\w\s]|\n|(?:stars?|points?|because|since|overall|here|for|as)\b))"
)
_LISTED = re.compile(r"^(?:[-•] ?)?(\d{1,2}) ?[:.)=\-–] ?(?=\S)(.{0,200})", re.MULTILINE)
_UNDECIDED = re.compile(
    r"(?<![\w.])\d{1,2} ?(?:or|to|and|-|–) ?\d{1,2}(?![\w.]|[.,]\d)", re.IGNORECASE
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
    text = _without_scale(_plain(reply), scale)
    first = text.partition("\n")[0]
    if _UNDECIDED.search(first):
        return None
    if stated := _STATED.findall(text) or _ON_SCALE.findall(first):
        return scale.valid(*stated[-1])
    if leading := _BY_ITSELF.match(text):
        return scale.valid(leading[1])
    if scaled := _ON_SCALE.findall(text):
        return scale.valid(*scaled[-1])
    numbers = set(_BY_ITSELF.findall(text))
    if numbers:
        return scale.valid(numbers.pop()) if len(numbers) == 1 else None
    words = {word.lower() for word in _WORD.findall(text)}
    if len(words) != 1:
        return None
    return scale.valid(str(_WORDS.index(words.pop()) + 1))


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


# Yes or no.

_IDIOM = re.compile(
    r"\b(?:there is |with(?:out)? )?no (?:doubt|question|problem|issues?|longer|need|matter"
    r"|one|idea|difference|errors?|mistakes?|contradictions?)\b",
    re.IGNORECASE,
)
# What follows is not said of the response, up to the end of the sentence.
_OPEN = re.compile(
    r"\b(?:whether|if|unless|unclear|unsure|not (?:sure|certain)|partial(?:ly)?|partly|half"
    r"|no (?:reason|information|mention|evidence|indication|basis|way))\b[^.!?\n]*",
    re.IGNORECASE,
)
_BOTH = re.compile(r"\b(?:yes ?(?:and|or|/|,) ?no|no ?(?:and|or|/|,) ?yes)\b", re.IGNORECASE)
_LEADING = re.compile(
    r"[^\w\n]{0,9}(?:(?:my |the |final ){0,3}(?:verdict|answer|judge?ment|decision|label)"
    r" ?(?:is|:|=)? ?)?[^\w\n]{0,9}(yes|no|true|false|correct|incorrect|wrong)\b",
    re.IGNORECASE,
)
# A word that turns the verdict around, at most three words before it.
_TURNED = re.compile(
    r"\b(?:not|never|neither|nothing|without|fails to|far from|hardly|cannot"
    r"|(?:is|was|does|do|are|ca)n[’']?t)"
    r"(?: \w+){0,3}? (correct|right|true|accurate|incorrect|wrong|false)\b",
    re.IGNORECASE,
)
_NOT_YES = re.compile(
    r"(?:\bnot|\bnever|\bcannot|n[’']t|\bno reason to)(?: \w+){0,2}? yes\b", re.IGNORECASE
)
_JUDGING = re.compile(
    r"\b(correct|incorrect|true|false|accurate|inaccurate|wrong)\b", re.IGNORECASE
)
_GOOD = frozenset({"yes", "true", "correct", "right", "accurate"})


def parse_yes_no(reply: str) -> bool | None:
    """Return whether the reply says yes; None if it says neither, or both.

    The first line counts before the rest, capitals before small letters, and
    YES or NO before words such as "incorrect", which says no.
    """
    text = _IDIOM.sub(" ", _plain(reply)).strip()
    first = text.partition("\n")[0]
    if _BOTH.search(first) or _NOT_YES.search(first):
        return None
    if leading := _LEADING.match(first):
        said = leading[1].lower()
        if said in ("yes", "no") or _judged(first) is (said in _GOOD):
            return said in _GOOD
    said, all_said = _OPEN.sub(" ", first), _OPEN.sub(" ", text)
    for part, flags in ((first, 0), (text, 0), (said, re.IGNORECASE), (all_said, re.IGNORECASE)):
        found = {word.lower() for word in re.findall(r"\b(?:YES|NO)\b", part, flags)}
        if len(found) == 1:
            return found == {"yes"}
        if len(found) == 2:
            return None
    judged = _judged(first)
    return judged if judged is not None else _judged(text)


def _judged(text: str) -> bool | None:
    """Return what words such as "correct" and "not right" say together; None if they differ."""
    # What is asked back is not said.
    parts = re.split(r"([.!?\n])", _OPEN.sub(" ", text))
    text = ". ".join(
        said for said, end in zip(parts[::2], [*parts[1::2], ""], strict=True) if end != "?"
    )
    verdicts = {word.lower() not in _GOOD for word in _TURNED.findall(text)}
    rest = _TURNED.sub(" ", text)
    verdicts |= {word.lower() in _GOOD for word in _JUDGING.findall(rest)}
    return verdicts.pop() if len(verdicts) == 1 else None


# Choices between two.

_CHOSEN = re.compile(
    r"[^\w\n]{0,9}(?:(?:my |the |final ){0,3}(?:verdict|answer|choice|winner|decision)"
    r" ?(?:is|:|=)? ?)?[^\w\n]{0,9}(?:response |answer |output |assistant )?(A|B|C|tie|neither)\b"
    r"(?! ?(?:and|or|/|,) ?[ABC]\b)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:[Rr]esponse|[Aa]nswer|[Oo]utput|[Aa]ssistant) ([AB])"
    r" (?:wins|is (?:the )?(?:better|best|winner))\b"
)
_AFTER_ARTICLE = re.compile(r" (?!is\b|wins\b)[a-z]")
_CHOICES: dict[str, Choice] = {"A": "first", "B": "second", "C": "tie"}


def parse_choice(reply: str) -> Choice | None:
    """Return which of two responses the reply prefers; None if it does not say."""
    text = _plain(reply)
    lines = text.split("\n")
    for line in dict.fromkeys((lines[0], lines[-1])):
        chosen = _CHOSEN.match(line)
        # An article is no choice: "A good answer".
        if chosen and not (chosen[1] in "Aa" and _AFTER_ARTICLE.match(line, chosen.end())):
            return _CHOICES.get(chosen[1].upper(), "tie")
    named = {*_NAMED.findall(text)}
    return _CHOICES[named.pop()] if len(named) == 1 else None


_IDENTIFIER = re.compile(r"\W*([mM])\b")


def parse_identifier(reply: str) -> Choice | None:
    """Return the choice of AlpacaEval's prompt, `m` for the first and `M` for the second.

    A reply with neither is read as `parse_choice` does.
    """
    if found := _IDENTIFIER.match(reply[:_HEAD]):
        return "first" if found[1] == "m" else "second"
    return parse_choice(reply)
