"""Lead: the beginning of a text as its summary, which is what every summary is compared with."""

import re
from collections.abc import Iterator
from itertools import islice

from cbench_server.errors import InvalidInput
from cbench_server.systems.controls import count_words, keep_beginning
from cbench_server.types import Example

_UNITS = ("sentences", "words")
# Where a sentence may end: a mark, closing quotes and white space; a CJK mark; an empty line.
_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’]*|(?=\n\s*\n)")
# What ends with a dot and is no end: initials, titles, and the like.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|etc|e\.g|i\.e|cf|No|Fig|Inc|Ltd|Co|Gen|"
    r"Col|Lt|Sen|Rep|Gov|approx|a\.m|p\.m|U\.S)\.$"
)
_GLANCE = 16


class Lead:
    """Keeps the beginning of the context; where a summary is asked for, that is its answer."""

    name = "lead"
    version = "2"
    description = (
        "Keeps the first `n` sentences of the context, or words by `unit`: the usual baseline of "
        "summaries."
    )

    def __init__(self, *, n: int = 3, unit: str = "sentences") -> None:
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise InvalidInput(f"n is {n!r}; it is how many {unit} to keep, from 1 on")
        if unit not in _UNITS:
            raise InvalidInput(f"unit is {unit!r}; it is one of {', '.join(_UNITS)}")
        self._n = n
        self._unit = unit

    def process(self, example: Example) -> Example:
        context = example.get("context")
        text = context if isinstance(context, str) else ""
        kept = {key: value for key, value in example.items() if key != "response"}
        return {**kept, "context": self.beginning_of(text)}

    def beginning_of(self, text: str) -> str:
        """Return the first sentences or words of a text."""
        if self._unit == "words":
            words = count_words(text)
            return keep_beginning(text, min(1.0, self._n / words)) if words else ""
        ends = [0, *islice(_ends(text), self._n)]
        return text[: ends[-1]].strip()


def _ends(text: str) -> Iterator[int]:
    """Yield where sentences end; the last one ends with the text."""
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        before = text[max(start, end - _GLANCE) : end]
        if text[start:end].strip() and not _ABBREVIATION.search(before):
            yield end
            start = end
    if text[start:].strip():
        yield len(text)
