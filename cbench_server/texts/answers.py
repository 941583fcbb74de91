"""Answers: those an example accepts, and their words as the official SQuAD v1.1 script has them."""

import math
import re
import string
from typing import Any

from cbench_server.types import Example

_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Lowercase, remove ASCII punctuation, remove articles, collapse whitespace, in that order."""
    return " ".join(answer_tokens(text))


def answer_tokens(text: str) -> list[str]:
    """Return the words of the normalised text."""
    return _ARTICLES.sub(" ", text.lower().translate(_DELETE_PUNCTUATION)).split()


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
