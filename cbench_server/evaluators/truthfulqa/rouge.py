"""ROUGE-1, ROUGE-2 and ROUGE-Lsum of one response and one reference, as rouge-score has them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
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
    def different_lines(self) -> set[tuple[str, ...]]:
        """The lines, each once."""
        return set(map(tuple, self.lines))

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
            for place in {
                place
                for columns in _outlines(response.different_lines, set(line))
                for place in _places(line, columns)
            }
        )
        shared = overlap(response.counts, followed)
    return _f1(shared, len(response.words), len(reference.words))


def _outlines(lines: Iterable[Sequence[str]], wanted: set[str]) -> set[tuple[str, ...]]:
    """Return the different lines that have wanted words, with one gap for any others in a row.

    Gaps stay: which of several longest subsequences is taken depends on them.
    """
    outlines = set()
    for line in lines:
        if not wanted.isdisjoint(line):
            marked = [word if word in wanted else "" for word in line]
            outlines.add(
                tuple(w for w, before in zip(marked, ["x", *marked], strict=False) if w or before)
            )
    return outlines


def _places(line: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Return where a line follows the columns, along the path that rouge-score walks back."""
    shown = set(columns)
    rows = [place for place, word in enumerate(line) if word in shown]
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
