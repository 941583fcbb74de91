"""Similarity of code as LongBench measures it: difflib's ratio in whole percent.

LongBench calls fuzzywuzzy, whose ratio is difflib's where python-Levenshtein is
not installed. difflib takes quadratic time in Python; here Python's own search
for substrings finds the same blocks.
"""

from collections import Counter

_POPULAR_FROM = 200
"""Length of a reference from which difflib ignores its most frequent characters."""


def code_similarity(response: str, reference: str) -> float:
    """Compare the first line of code in a response with the expected line."""
    line = _first_code_line(response)
    if line == reference:
        return 1.0
    if not line or not reference:
        return 0.0
    matched = _Blocks(line, reference).matched()
    return round(100 * (2.0 * matched / (len(line) + len(reference)))) / 100


def _first_code_line(text: str) -> str:
    """Return the first line that has neither a backquote nor a comment's sign."""
    for line in text.lstrip("\n").split("\n"):
        if "`" not in line and "#" not in line and "//" not in line:
            return line
    return ""


class _Blocks:
    """The blocks that difflib finds two texts to have in common.

    The longest block comes first, of several the one that begins first in the
    text, then in the reference; what is before and after it is searched likewise.
    """

    def __init__(self, text: str, reference: str) -> None:
        self._text = text
        self._reference = reference
        self._run_ends = _run_ends(reference)

    def matched(self) -> int:
        """Count the characters of all blocks."""
        total = 0
        ranges = [(0, len(self._text), 0, len(self._reference))]
        while ranges:
            low, high, from_, to = ranges.pop()
            place, at, size = self._longest(low, high, from_, to)
            if size:
                total += size
                if low < place and from_ < at:
                    ranges.append((low, place, from_, at))
                if place + size < high and at + size < to:
                    ranges.append((place + size, high, at + size, to))
        return total

    def _longest(self, low: int, high: int, from_: int, to: int) -> tuple[int, int, int]:
        """Find the longest block, grown by the frequent characters beside it."""
        text, reference = self._text, self._reference
        place, at, size = self._longest_of_rare(low, high, from_, to)
        while low < place and from_ < at and text[place - 1] == reference[at - 1]:
            place, at, size = place - 1, at - 1, size + 1
        while place + size < high and at + size < to and text[place + size] == reference[at + size]:
            size += 1
        return place, at, size

    def _longest_of_rare(self, low: int, high: int, from_: int, to: int) -> tuple[int, int, int]:
        text, reference, run_ends = self._text, self._reference, self._run_ends
        size = 0
        for at in range(from_, to):
            end = min(run_ends[at], to)
            while at + size < end and text.find(reference[at : at + size + 1], low, high) >= 0:
                size += 1
        best = (low, from_)
        if not size:
            return (*best, 0)
        stop = high
        for at in range(from_, to - size + 1):
            if at + size <= run_ends[at]:
                place = text.find(reference[at : at + size], low, stop)
                if place >= 0:
                    # Another one is better only if it begins before this one.
                    best, stop = (place, at), place + size - 1
        return (*best, size)


def _run_ends(reference: str) -> list[int]:
    """Return for each character where the run of characters that are not frequent ends."""
    frequent: set[str] = set()
    if len(reference) >= _POPULAR_FROM:
        most = len(reference) // 100 + 1
        frequent = {each for each, count in Counter(reference).items() if count > most}
    ends = [0] * len(reference)
    end = len(reference)
    for at in range(len(reference) - 1, -1, -1):
        if reference[at] in frequent:
            end = at
        ends[at] = end
    return ends
