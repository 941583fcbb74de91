"""A summariser by LexRank: keep the sentences that others, and the question, agree with.

Start it with: python examples/python/lexrank.py 127.0.0.1:50061
Options: `ratio` of the words to keep (0.3), and `bias` towards the question (0.9).
"""

import re
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from cbench_client import RemoteFailure, serve

Floats = npt.NDArray[np.float64]

SIMILAR = 0.1
ROUNDS = 100
CONVERGED = 1e-9
# A rank compares every sentence with every other, so longer texts are ranked in sections.
SECTION = 500


class LexRank:
    """Keeps the most central sentences by LexRank, biased towards the question."""

    name = "python-lexrank"
    version = "1"

    def process(self, example: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        ratio, bias = share(options, "ratio", 0.3), share(options, "bias", 0.9)
        kept = summarize(example["context"], example.get("question") or "", ratio, bias)
        return {**example, "context": kept}


def share(options: dict[str, Any], name: str, default: float) -> float:
    """Read an option that lies between 0 and 1."""
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        message = f"{name} is {value!r}; it must be a number from 0 to 1"
        raise RemoteFailure(message, reason="INVALID_ARGUMENT")
    return float(value)


def summarize(text: str, question: str, ratio: float, bias: float) -> str:
    """Return at most `ratio` of the words, in whole sentences and their order, at least one."""
    sentences = re.findall(r"\S.*?(?:[.!?](?=\s)|$)", text, re.S | re.M)
    kept = []
    for start in range(0, len(sentences), SECTION):
        section = sentences[start : start + SECTION]
        ranks = rank(section, question, bias)
        budget = ratio * sum(len(sentence.split()) for sentence in section)
        chosen: list[int] = []
        for place in sorted(range(len(section)), key=lambda place: -ranks[place]):
            budget -= len(section[place].split())
            if chosen and budget < 0:
                break
            chosen.append(place)
        kept += [section[place] for place in sorted(chosen)]
    return " ".join(kept)


def rank(sentences: list[str], question: str, bias: float) -> list[float]:
    """Rank sentences as pages by their links: similar ones link to each other.

    With the share `bias` a reader who follows the links jumps to a sentence
    near the question instead, or to any if the question fits none.
    """
    vectors = weigh([*map(words, sentences), words(question)])
    wanted = vectors[:-1] @ vectors[-1]
    jump = wanted / wanted.sum() if wanted.any() else np.full(len(sentences), 1 / len(sentences))
    links = vectors[:-1] @ vectors[:-1].T
    # A link to itself would let a sentence that is like no other keep its rank.
    links[(links < SIMILAR) | np.eye(len(sentences), dtype=bool)] = 0
    links[links.sum(axis=1) == 0] = jump
    links /= links.sum(axis=1, keepdims=True)
    ranks = jump
    for _ in range(ROUNDS):
        before, ranks = ranks, bias * jump + (1 - bias) * (ranks @ links)
        if np.abs(ranks - before).sum() < CONVERGED:
            break
    # Rounded, so that the last bits, which differ by machine, decide nothing.
    return [float(value) for value in np.round(ranks, 9)]


def weigh(bags: list[list[str]]) -> Floats:
    """Return a unit vector by tf-idf for each bag; the last, the question, counts for none."""
    places = {word: place for place, word in enumerate(sorted({w for bag in bags for w in bag}))}
    counts = np.zeros((len(bags), len(places)))
    for bag, row in zip(bags, counts, strict=True):
        for word in bag:
            row[places[word]] += 1
    containing = (counts[:-1] > 0).sum(axis=0)
    vectors = counts * np.log1p(len(bags) / (1 + containing))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = vectors / np.where(lengths == 0, 1, lengths)
    return unit


def words(text: str) -> list[str]:
    """Split into lower-case words, without the endings that questions change."""
    return [re.sub(r"(ing|ed|es|s)$", "", word) for word in re.findall(r"\w+", text.lower())]


if __name__ == "__main__":
    serve(LexRank(), *sys.argv[1:])
