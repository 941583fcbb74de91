"""Answers: those an example accepts, and their words as the official SQuAD v1.1 script has them."""

import math
import re
import string
from typing import Any

from cbench_server.types import Example

_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ARTICLE_WORDS = frozenset({"a", "an", "the"})


def normalize_answer(text: str) -> str:
    """Lowercase, remove ASCII punctuation, remove articles, collapse whitespace, in that order."""
    return " ".join(answer_tokens(text))


def answer_tokens(text: str) -> list[str]:
    """Return the words of the normalised text."""
    plain = text.lower().translate(_DELETE_PUNCTUATION)
    words = plain.split()
    if plain.isascii() and "".join(words).isalnum():
        # White space is all that bounds a word here, so no pattern has to look for articles.
        return words if _ARTICLE_WORDS.isdisjoint(words) else _without_articles(words)
    return _ARTICLES.sub(" ", plain).split()


def _without_articles(words: list[str]) -> list[str]:
    return [word for word in words if word not in _ARTICLE_WORDS]


def references(original: Example) -> list[str]:
    """Return the answers an example accepts: those in `answers`, else those in `answer`.

    Either may hold one or a list. Null, NaN and text without any character but
    white space are no references; 0 and False are.
    """
    return _texts(original.get("answers")) or _texts(original.get("answer"))


def _texts(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [text for each in value for text in _texts(each)]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return []
    text = str(value)
    return [text] if text.strip() else []
