"""No text makes a step hold the event loop: fragments alone, in pairs, as beginning and end.

The fragments are those of the security review and more: cues, brackets, marks and letters that
patterns look for. `make faults` tries all pairs, `make test` each alone and some pairs.
"""

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from .steps import LENGTH, Step, cpu_seconds, steps

FRAGMENTS: list[str] = json.loads((Path(__file__).parent / "fragments.json").read_text())
LONGEST_S = 0.050
"""CPU time for which one step may hold the loop."""
SEED, SOME_PAIRS = 16, 300
EVERY = dict(steps())
SHAPES = ("repeated", "after", "before")


def grown(pair: tuple[str, str], shape: str) -> str:
    """Make a long text of two fragments."""
    first, second = pair
    if shape == "after":
        return (first + second * (LENGTH // len(second)))[:LENGTH]
    if shape == "before":
        return first * ((LENGTH - len(second)) // len(first)) + second
    return ((first + second) * (LENGTH // len(first + second) + 1))[:LENGTH]


def alone() -> Iterator[tuple[str, str]]:
    """Yield each fragment, named and repeated."""
    for fragment in FRAGMENTS:
        yield repr(fragment), grown((fragment, fragment), "repeated")


def some_pairs() -> Iterator[tuple[str, str]]:
    """Yield the same pairs every time, each in one shape."""
    chosen = random.Random(SEED)
    for _ in range(SOME_PAIRS):
        pair, shape = (chosen.choice(FRAGMENTS), chosen.choice(FRAGMENTS)), chosen.choice(SHAPES)
        yield f"{pair[0]!r} {pair[1]!r} {shape}", grown(pair, shape)


def all_pairs(seed: int, parts: int) -> Iterator[tuple[str, str]]:
    """Yield one part of all pairs in all shapes."""
    for number, (pair, shape) in enumerate(
        itertools.product(itertools.product(FRAGMENTS, FRAGMENTS), SHAPES)
    ):
        if number % parts == seed:
            yield f"{pair[0]!r} {pair[1]!r} {shape}", grown(pair, shape)


def worst(step: Step, texts: Iterator[tuple[str, str]]) -> tuple[float, str]:
    """Return the longest CPU time of a step, and the text that took it."""
    # What is made once, such as a vocabulary or a pattern, is no text's fault.
    for text in ("Paris", "The answer is (A)."):
        step(text)
    found = 0.0, ""
    for name, text in texts:
        taken = cpu_seconds(step, text)
        # A machine in need of memory, or of a cooler, is none either.
        for _ in range(3):
            if taken <= LONGEST_S / 2:
                break
            taken = min(taken, cpu_seconds(step, text))
        found = max(found, (taken, name))
    return found


def _check(name: str, texts: Iterator[tuple[str, str]]) -> None:
    seconds, text = worst(EVERY[name], texts)
    print(f"worst of {name}: {seconds * 1000:.1f} ms of CPU for {text}")
    assert seconds <= LONGEST_S, f"{name} held the loop for {seconds * 1000:.0f} ms: {text}"


@pytest.mark.parametrize("name", EVERY)
def test_no_step_holds_the_loop(name: str) -> None:
    _check(name, itertools.chain(alone(), some_pairs()))


@pytest.mark.faults
@pytest.mark.parametrize("part", range(64))
@pytest.mark.parametrize("name", EVERY)
def test_no_step_holds_the_loop_for_any_pair(name: str, part: int) -> None:
    _check(name, all_pairs(part, 64))


def test_every_fragment_is_there_once() -> None:
    assert len(set(FRAGMENTS)) == len(FRAGMENTS) >= 90


def test_a_step_that_wanders_is_found() -> None:
    """The guard itself works: a pattern that is quadratic is over the limit."""
    import re

    wandering = re.compile(r"(?:#+)+x")
    seconds, _ = worst(lambda text: wandering.search(text[:24]), iter([("hashes", "#" * 24)]))
    assert seconds > LONGEST_S
