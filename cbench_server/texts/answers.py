"""Answers: those an example accepts, and their words as the official SQuAD v1.1 script has them."""

import re
import string

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
    """Return `answers` if there are any, else `[answer]`; nothing if the example has neither.

    Empty strings are dropped where others exist, so `[""]` means that the
    expected answer is empty. Other values than strings are given as text.
    """
    many = original.get("answers")
    if isinstance(many, list | tuple):
        found = [str(answer) for answer in many if answer is not None]
    else:
        found = [] if many is None else [str(many)]
    if not found:
        single = original.get("answer")
        return [] if single is None else [str(single)]
    return [answer for answer in found if answer] or [""]
