"""The hostile corpus: long texts of the fragments that patterns look for."""

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

from .steps import LENGTH

FRAGMENTS: list[str] = json.loads((Path(__file__).parent / "fragments.json").read_text())
SEED, SOME_PAIRS = 16, 300
SHAPES = ("repeated", "after", "before")

Named = tuple[str, str]
"""A text, after its name."""


def grown(pair: tuple[str, str], shape: str) -> str:
    """Make a long text of two fragments."""
    first, second = pair
    if shape == "after":
        return (first + second * (LENGTH // len(second)))[:LENGTH]
    if shape == "before":
        return first * ((LENGTH - len(second)) // len(first)) + second
    return ((first + second) * (LENGTH // len(first + second) + 1))[:LENGTH]


def alone() -> Iterator[Named]:
    """Yield each fragment, named and repeated."""
    for fragment in FRAGMENTS:
        yield repr(fragment), grown((fragment, fragment), "repeated")


def some_pairs() -> Iterator[Named]:
    """Yield the same pairs every time, each in one shape."""
    chosen = random.Random(SEED)
    for _ in range(SOME_PAIRS):
        pair, shape = (chosen.choice(FRAGMENTS), chosen.choice(FRAGMENTS)), chosen.choice(SHAPES)
        yield f"{pair[0]!r} {pair[1]!r} {shape}", grown(pair, shape)


def all_pairs(part: int = 0, parts: int = 1) -> Iterator[Named]:
    """Yield one part of all pairs in all shapes, mixed alike every time."""
    every = [
        (pair, shape)
        for pair in itertools.product(FRAGMENTS, FRAGMENTS)
        for shape in SHAPES
        # "abab..." and "baba..." are one text but for its edges; of "aaaa..." there is one shape.
        if (pair[0] <= pair[1] if shape == "repeated" else pair[0] != pair[1])
    ]
    random.Random(SEED).shuffle(every)
    for pair, shape in every[part::parts]:
        yield f"{pair[0]!r} {pair[1]!r} {shape}", grown(pair, shape)
