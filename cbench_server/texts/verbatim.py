"""Verbatim text: how much of a text stands word for word in the one that it was made from."""

import re
from collections.abc import Iterator

_WORD = re.compile(r"\w+")
# Fewer words in a row are met by chance, or are what is left where others were dropped.
_IN_A_ROW = 5


def verbatim_share(original: str, left: str) -> float | None:
    """Return the share of the words of `left` that stand in a row in the original; None of none.

    A sentence that was picked counts whole; one from which words were dropped does not.
    """
    source, words = (_WORD.findall(text.casefold()) for text in (original, left))
    if not words:
        return None
    length = min(_IN_A_ROW, len(words))
    known = set(_rows(source, length))
    covered, end = 0, 0
    for start, row in enumerate(_rows(words, length)):
        if row in known:
            covered += start + length - max(start, end)
            end = start + length
    return covered / len(words)


def _rows(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(length)), strict=False)
