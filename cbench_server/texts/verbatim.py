"""Verbatim text: how much of a text stands word for word in the one that it was made from."""

import re
from collections.abc import Collection, Iterator

_WORD = re.compile(r"\w+")
# Fewer words in a row are met by chance, or are what is left where others were dropped.
_IN_A_ROW = 5


def verbatim_share(original: str, left: str) -> float | None:
    """Return the share of the words of `left` that stand in a row in the original; None of none.

    A sentence that was picked counts whole; one from which words were dropped does not.
    """
    words = _words(left)
    return _Source(_words(original)).covered(words)[0] / len(words) if words else None


def picked_share(original: str, left: str, labels: str) -> float | None:
    """Return that share where each line was picked by itself, such as a turn of a conversation.

    Labels count neither way, for everyone writes them otherwise: words of `labels`, such
    as who spoke and when, and what stands around the part of a line that was picked.
    """
    known = set(_words(labels))
    source = _Source(_words(original, known))
    covered = count = 0
    for text in left.splitlines():
        line = _words(text, known)
        found, length = source.covered(line)
        covered += found
        count += length if found else len(line)
    return covered / count if count else None


def _words(text: str, without: Collection[str] = ()) -> list[str]:
    return [word for word in _WORD.findall(text.casefold()) if word not in without]


class _Source:
    """The text that others are made from."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._rows: dict[int, set[tuple[str, ...]]] = {}

    def covered(self, words: list[str]) -> tuple[int, int]:
        """Return how many words stand in a row here, and how far it is from the first to the last.

        Fewer than make a row have to stand here together.
        """
        length = min(_IN_A_ROW, len(words))
        if length not in self._rows:
            self._rows[length] = set(_rows(self._words, length))
        covered, end, first = 0, 0, len(words)
        for start, row in enumerate(_rows(words, length)):
            if row in self._rows[length]:
                covered += start + length - max(start, end)
                end = start + length
                first = min(first, start)
        return covered, max(end - first, 0)


def _rows(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(length)), strict=False)
