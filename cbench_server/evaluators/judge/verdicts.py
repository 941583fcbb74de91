"""Verdicts of a judge: the rating or the answer its reply states, or nothing."""

import re

_NUMBER = r"(?<![\w.,-])(\d{1,3}(?:\.\d+)?)(?![\w]|[.,]\d)"
_MARKUP = re.compile(r"[*_`#$\"]+|\\boxed|[{}\[\]]")
_OUT_OF = r"\s*(?:/|out\s+of)\s*(\d+)(?!\w)"
_ON_SCALE = re.compile(_NUMBER + _OUT_OF, re.IGNORECASE)
_STATED = re.compile(
    r"\b(?:rating|score|grade|verdict|rate\s+(?:it|this|the\s+response)|(?:give|assign)(?:\s+it|\s+this)?)"
    rf"\b(?:\s+(?:is|of|would\s+be|as|a|at|the|response|it))*\s*[:=\-–]?\s*(?:a\s+)?{_NUMBER}(?:{_OUT_OF})?",
    re.IGNORECASE,
)
_SCALE = re.compile(
    r"(?:on\s+)?(?:a\s+|the\s+)?(?:scale\s+)?(?:of|from|between)?\s*\b1\s*(?:-|–|to|and|through)\s*5\b"
    r"|^\s*out\s+of\s+(?:5|five)\b|\b(?:5|five)[-\s]point\b",
    re.IGNORECASE,
)
# A number that counts something ("2 errors") is not a rating.
_BY_ITSELF = re.compile(
    rf"{_NUMBER}(?=\s*(?:$|[^\w\s]|\n|(?:stars?|points?|because|since|overall|here|for|as)\b))"
)
_UNDECIDED = re.compile(r"\b[1-5]\s*(?:or|to|and|-|–)\s*[1-5]\b", re.IGNORECASE)
_WORDS = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0}
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)


def parse_rating(reply: str) -> float | None:
    """Return the rating from 1 to 5 that the reply states; None if it states none, or several.

    The number meant counts, not the first one: "Out of 5, I give 2" is 2,
    "4.5/5" is 4.5, and "10" is not a rating.
    """
    text = _SCALE.sub(" ", _MARKUP.sub("", reply)).strip()
    if _UNDECIDED.search(text.partition("\n")[0]):
        return None
    if stated := _STATED.findall(text) or _ON_SCALE.findall(text.partition("\n")[0]):
        return _valid(*stated[-1])
    if leading := _BY_ITSELF.match(text):
        return _valid(leading[1])
    if scaled := _ON_SCALE.findall(text):
        return _valid(*scaled[-1])
    numbers = set(_BY_ITSELF.findall(text))
    if numbers:
        return _valid(numbers.pop()) if len(numbers) == 1 else None
    words = {word.lower() for word in _WORD.findall(text)}
    return _WORDS[words.pop()] if len(words) == 1 else None


def _valid(number: str, scale: str = "") -> float | None:
    rating = float(number)
    return rating if 1 <= rating <= 5 and scale in ("", "5") else None


_IDIOM = re.compile(
    r"\b(?:there\s+is\s+|with(?:out)?\s+)?no\s+(?:doubt|question|problem|issues?|longer|need|reason"
    r"|matter|one|idea|information|mention|difference)\b",
    re.IGNORECASE,
)
_LEADING = re.compile(
    r"\W*(?:(?:my\s+|the\s+|final\s+)*(?:verdict|answer|judge?ment|decision)\s*(?:is|:|=)?\s*)?"
    r"\W*(yes|no)\b(?!\s*(?:and|or|/)\s*(?:yes|no)\b)",
    re.IGNORECASE,
)


def parse_yes_no(reply: str) -> bool | None:
    """Return whether the reply says YES; None if it says neither, or both.

    The first line counts before the rest, and capitals before small letters:
    "there is no doubt: YES" is YES.
    """
    text = _IDIOM.sub(" ", _MARKUP.sub("", reply)).strip()
    first = text.partition("\n")[0]
    if leading := _LEADING.match(first):
        return leading[1].lower() == "yes"
    for part, flags in ((first, 0), (text, 0), (first, re.IGNORECASE), (text, re.IGNORECASE)):
        said = {word.lower() for word in re.findall(r"\b(?:YES|NO)\b", part, flags)}
        if len(said) == 1:
            return said == {"yes"}
    return None
