"""Haystacks: texts of any number of sentences that needles are put into."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from cbench_server.datasets.embedded.sets import LONG_NOTES

# Written for this; it says nothing, and the same thing again.
NOISE = (
    "The kettle is on the stove.",
    "The window faces the garden.",
    "A clock ticks in the hall.",
    "The rain has stopped for now.",
    "Someone closes a door upstairs.",
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9])|\n+")


@cache
def essay() -> tuple[str, ...]:
    """Return the sentences of the embedded dataset long-notes, written for this package."""
    texts = (str(example["context"]) for example in LONG_NOTES.examples())
    return tuple(
        sentence.strip() for text in texts for sentence in _SENTENCE.split(text) if sentence.strip()
    )


def sentences(source: Sequence[str], count: int, start: int = 0) -> list[str]:
    """Return so many sentences of a source from `start` on; it is repeated as often as needed."""
    size = len(source)
    return [source[(start + place) % size] for place in range(count)]


def with_needles(
    hay: Sequence[str], needles: Sequence[str], depths: Sequence[int], joint: str
) -> str:
    """Put each needle where its depth is, in percent of the characters, and join it all.

    A needle stands between two sentences. Depths come in order; needles of the
    same depth stay in theirs.
    """
    ends = list(accumulate(map(len, hay), initial=0))
    places = zip((bisect_left(ends, ends[-1] * d // 100) for d in depths), needles, strict=True)
    parts: list[str] = []
    done = 0
    for place, needle in places:
        parts += [*hay[done:place], needle]
        done = place
    return joint.join([*parts, *hay[done:]])
