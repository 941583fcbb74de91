"""Answers: those an example accepts, and their words as the official SQuAD v1.1 script has them."""

import re
import string

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
