"""Memory systems that need no model: what remembering everything, the end, or by words would give.

They retrieve and do not answer. A reader answers from their context where a run
names one; without it, rows are scored by whether the answer is in the context.
Each object remembers one conversation.
"""

import re
from collections.abc import Iterable
from threading import Lock
from typing import Any

from cbench_server.datasets.catalog.memory import transcript
from cbench_server.errors import InvalidInput
from cbench_server.tokens import count_tokens

_WORD = re.compile(r"\w+")


class _Notes:
    """The turns of a conversation as lines of text, which its subclasses choose from."""

    ranks = False
    """Whether lines are chosen by what is asked, so that the first ones are the best."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._tokens: dict[int, int] = {}
        self._bytes = 0

    def reset(self) -> None:
        """Forget everything."""
        self._lines, self._tokens, self._bytes = [], {}, 0

    def ingest(self, turns: list[dict[str, Any]]) -> dict[str, Any]:
        """Remember turns."""
        lines = [transcript([turn]) for turn in turns]
        self._lines += lines
        self._bytes += sum(len(line.encode("utf-8", "replace")) for line in lines)
        return {"stored_bytes": self._bytes}

    def query(self, question: str, budget: int | None = None) -> dict[str, Any]:
        """Return the lines chosen, in order of time, as many of the best as the budget holds."""
        chosen = self._within(self._ranked(question), budget)
        context = "\n".join(self._lines[number] for number in sorted(chosen))
        ranked = {"retrieved": [self._lines[number] for number in chosen]} if self.ranks else {}
        return {"context": context, "stored_bytes": self._bytes, **ranked}

    def _ranked(self, question: str) -> Iterable[int]:
        """Return the numbers of the lines to show, the most important first."""
        raise NotImplementedError

    def _within(self, ranked: Iterable[int], budget: int | None) -> list[int]:
        if budget is None:
            return list(ranked)
        chosen, left = [], budget
        for number in ranked:
            if number not in self._tokens:
                # One more for the line break.
                self._tokens[number] = count_tokens(self._lines[number]) + 1
            if self._tokens[number] > left:
                break
            left -= self._tokens[number]
            chosen.append(number)
        return chosen


class FullHistory(_Notes):
    """Returns the whole conversation, or with a budget as much of its end as fits."""

    name = "full-history"
    version = "1"
    description = "Remembers every turn and returns them all: the ceiling, at full price."

    def _ranked(self, question: str) -> Iterable[int]:
        return reversed(range(len(self._lines)))


class NoMemory(_Notes):
    """Returns nothing of the conversation."""

    name = "no-context"
    version = "1"
    description = "Remembers nothing: what is answered then was known or guessed."

    def _ranked(self, question: str) -> Iterable[int]:
        return ()


class LastN(_Notes):
    """Returns the last `n` turns."""

    name = "last-n"
    version = "1"
    description = "Returns the last `n` turns, whatever is asked."

    def __init__(self, *, n: int = 20) -> None:
        super().__init__()
        self._n = _checked("n", n)

    def _ranked(self, question: str) -> Iterable[int]:
        count = len(self._lines)
        return reversed(range(max(0, count - self._n), count))


class Bm25(_Notes):
    """Returns the `k` turns that share the rarest words with the question."""

    name = "bm25"
    version = "2"
    ranks = True
    description = "Returns the `k` turns that match the question best by BM25."

    def __init__(self, *, k: int = 20) -> None:
        # Imported here: it takes a second, which most processes need not spend.
        import bm25s

        super().__init__()
        self._make_index = bm25s.BM25
        self._k = _checked("k", k)
        self._index: Any = None
        self._indexing = Lock()

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._index = None

    def ingest(self, turns: list[dict[str, Any]]) -> dict[str, Any]:
        """Remember turns; they are indexed when the first question comes."""
        self._index = None
        return super().ingest(turns)

    def _ranked(self, question: str) -> Iterable[int]:
        words = _words(question)
        if not words or not self._lines:
            return []
        scores = self._built().get_scores(words)
        # Of equal lines the earlier one first, so that results do not depend on the sort.
        best = sorted((-float(score), number) for number, score in enumerate(scores) if score > 0)
        return [number for _, number in best[: self._k]]

    def _built(self) -> Any:
        with self._indexing:
            if self._index is None:
                index = self._make_index()
                index.index([_words(line) or [""] for line in self._lines], show_progress=False)
                self._index = index
            return self._index


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _checked(name: str, value: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInput(f"{name} is {value!r}; it is how many turns to return, from 1 on")
    return value
