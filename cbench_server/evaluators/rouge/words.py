"""Words as the rouge-score package sees them, and how many of them two texts share in order."""

import re
import sys
from functools import cache, lru_cache
from typing import Any

from rapidfuzz.distance import LCSseq

# What rouge-score keeps of a text: runs of these, in lower case.
_WORD = re.compile(r"[a-z0-9]+")
_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}


def words_of(text: str, *, use_stemmer: bool) -> list[str]:
    """Return the words of a text, the same as rouge-score's."""
    text = text.lower()
    words = text.translate(_SPACES).split() if text.isascii() else _WORD.findall(text)
    return [word for word in map(_stem, words) if word] if use_stemmer else words


def longest_common(words: list[str], wanted: list[str]) -> int:
    """Return the length of the longest common subsequence."""
    # Only words of both can be part of it. A character stands for each, since rapidfuzz reads
    # strings faster than lists, unless a text has more words than there are characters.
    both = set(wanted).intersection(words)
    if len(both) > sys.maxunicode:
        return LCSseq.similarity(words, wanted)
    spelling = {word: chr(place) for place, word in enumerate(both)}
    spelled = (
        "".join([spelling[word] for word in text if word in both]) for text in (words, wanted)
    )
    return LCSseq.similarity(*spelled)


@cache
def _stemmer() -> Any:
    # nltk takes half a second to import, and only stemming needs it.
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    # Only words of more than three characters, as rouge-score does.
    return str(_stemmer().stem(word)) if len(word) > 3 else word
