"""ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum: F1 of a response and one reference."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from cbench_server.evaluators.rouge.subsequences import common_places
from cbench_server.evaluators.rouge.words import longest_common, words_of

_Unit = TypeVar("_Unit")


class RougeText:
    """A text as ROUGE reads it: its words, and those of each line."""

    def __init__(self, text: str, *, use_stemmer: bool = False) -> None:
        lines = [words_of(line, use_stemmer=use_stemmer) for line in text.split("\n") if line]
        self.lines = lines
        self.words = [word for line in lines for word in line]
        self.counts = Counter(self.words)
        self.pairs = Counter(pairwise(self.words))


def rouge_1(response: RougeText, reference: RougeText) -> float:
    """Compare single words."""
    shared = _shared(response.counts, reference.counts)
    return _f1(shared, len(response.words), len(reference.words))


def rouge_2(response: RougeText, reference: RougeText) -> float:
    """Compare pairs of neighbours."""
    shared = _shared(response.pairs, reference.pairs)
    return _f1(shared, len(response.words) - 1, len(reference.words) - 1)


def rouge_l(response: RougeText, reference: RougeText) -> float:
    """Compare the order of words, each text as one sequence."""
    shared = longest_common(response.words, reference.words)
    return _f1(shared, len(response.words), len(reference.words))


def rouge_lsum(response: RougeText, reference: RougeText) -> float:
    """Compare the order of words line by line.

    Each line of the reference counts the words that are in its longest common
    subsequence with any line of the response, none more often than the
    response has it.
    """
    if len(response.lines) == len(reference.lines) == 1:
        return rouge_l(response, reference)
    kept: Counter[str] = Counter()
    candidates = _CandidateLines(response.lines)
    for line, times in Counter(map(tuple, reference.lines)).items():
        for place in candidates.followed_places(line):
            kept[line[place]] += times
    return _f1(_shared(kept, response.counts), len(response.words), len(reference.words))


class _CandidateLines:
    """The different lines of a response, found by their words."""

    def __init__(self, lines: Iterable[Sequence[str]]) -> None:
        self._lines = [*dict.fromkeys(map(tuple, lines))]
        self._having: defaultdict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(self._lines):
            for word in set(line):
                self._having[word].append(number)

    def followed_places(self, wanted: Sequence[str]) -> set[int]:
        """Return the places of `wanted` that any of the lines follows."""
        followed: set[int] = set()
        places: defaultdict[str, set[int]] = defaultdict(set)
        for place, word in enumerate(wanted):
            places[word].add(place)
        for number in sorted({each for word in places for each in self._having.get(word, ())}):
            line = self._lines[number]
            # A line can only add places of its own words that none before it has given.
            if any(not places[word] <= followed for word in line if word in places):
                followed.update(common_places(line, wanted))
        return followed


def _shared(one: Counter[_Unit], other: Counter[_Unit]) -> int:
    if len(one) > len(other):
        one, other = other, one
    return sum(min(count, other[unit]) for unit, count in one.items() if unit in other)


def _f1(shared: int, response: int, reference: int) -> float:
    if not shared:
        return 0.0
    precision, recall = shared / response, shared / reference
    return 2 * precision * recall / (precision + recall)
