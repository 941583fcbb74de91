"""ROUGE-1, ROUGE-2 and ROUGE-Lsum of one response and one reference, as rouge-score has them."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from rapidfuzz.distance import LCSseq

from cbench_server.evaluators.truthfulqa.overlap import overlap

_WORD = re.compile(r"[a-z0-9]+")


class RougeText:
    """A text as ROUGE reads it: its words, and those of each line."""

    def __init__(self, text: str) -> None:
        # The rule by which the T5 metrics, and lm-eval after them, part sentences.
        lines = text.replace(" . ", ".\n").lower().split("\n")
        self.lines = [_WORD.findall(line) for line in lines]
        self.words = [word for line in self.lines for word in line]

    @cached_property
    def counts(self) -> Counter[str]:
        """Count the words."""
        return Counter(self.words)

    @cached_property
    def pairs(self) -> Counter[tuple[str, str]]:
        """Count the pairs of neighbours."""
        return Counter(pairwise(self.words))


def rouge_1(response: RougeText, reference: RougeText) -> float:
    """Compare single words."""
    shared = overlap(response.counts, reference.words)
    return _f1(shared, len(response.words), len(reference.words))


def rouge_2(response: RougeText, reference: RougeText) -> float:
    """Compare pairs of neighbours."""
    shared = overlap(response.pairs, pairwise(reference.words))
    return _f1(shared, len(response.words) - 1, len(reference.words) - 1)


def rouge_lsum(response: RougeText, reference: RougeText) -> float:
    """Compare the order of words, line by line.

    A word of a line of the reference counts if the longest common subsequence
    with any line of the response has it, and no word more often than the response.
    """
    if len(response.lines) == len(reference.lines) == 1:
        shared = LCSseq.similarity(response.words, reference.words)
    else:
        followed = (
            line[place]
            for line in reference.lines
            for place in {place for own in response.lines for place in _places(line, own)}
        )
        shared = overlap(response.counts, followed)
    return _f1(shared, len(response.words), len(reference.words))


def _places(line: Sequence[str], other: Sequence[str]) -> list[int]:
    """Return where `line` follows `other`, along the path that rouge-score walks back.

    Which of several longest subsequences it takes matters, so words that `line`
    does not have may only be left out where another such word is beside them.
    """
    wanted = set(line)
    if wanted.isdisjoint(other):
        return []
    columns = [
        word
        for before, word in pairwise(("", *other))
        if word in wanted or before in wanted or not before
    ]
    rows = [place for place, word in enumerate(line) if word in set(columns)]
    table = [[0] * (len(columns) + 1)]
    for place in rows:
        above, row = table[-1], [0]
        for column, word in enumerate(columns):
            equal = word == line[place]
            row.append(above[column] + 1 if equal else max(row[column], above[column + 1]))
        table.append(row)
    found, i, j = [], len(rows), len(columns)
    while i and j:
        if line[rows[i - 1]] == columns[j - 1]:
            found.append(rows[i - 1])
            i, j = i - 1, j - 1
        elif table[i][j - 1] > table[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return found


def _f1(shared: int, response: int, reference: int) -> float:
    return 2 * shared / (response + reference) if shared else 0.0
