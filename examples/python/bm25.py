"""A compressor: keep the passages that BM25 ranks first for the question.

Start it with: python examples/python/bm25.py 127.0.0.1:50061
"""

import math
import re
import sys
from collections import Counter
from typing import Any

from cbench_client import serve

K1, B = 1.5, 0.75
SENTENCES = 3


class Bm25:
    """Keeps the best passages of three sentences, in their order, up to a share of the words."""

    name = "bm25-passages"
    version = "1"

    def process(self, example: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        ratio = float(options.get("ratio", 0.3))
        kept = best_passages(example["context"], example.get("question", ""), ratio)
        return {**example, "context": kept}


def best_passages(context: str, question: str, ratio: float) -> str:
    """Return at most `ratio` of the words, in whole passages, and at least one passage."""
    sentences = re.findall(r"\S.*?(?:[.!?](?=\s)|$)", context, re.S)
    passages = [
        " ".join(sentences[start : start + SENTENCES])
        for start in range(0, len(sentences), SENTENCES)
    ]
    scores = bm25([words(passage) for passage in passages], words(question))
    budget = ratio * len(context.split())
    chosen: list[int] = []
    for place in sorted(range(len(passages)), key=lambda each: -scores[each]):
        budget -= len(passages[place].split())
        if chosen and budget < 0:
            break
        chosen.append(place)
    return "\n".join(passages[place] for place in sorted(chosen))


def bm25(documents: list[list[str]], asked: list[str]) -> list[float]:
    """Score each document for the words that are asked."""
    frequency = Counter(word for document in documents for word in set(document))
    mean = sum(map(len, documents)) / max(1, len(documents))
    scores = []
    for document in documents:
        counts, score = Counter(document), 0.0
        for word in set(asked) & counts.keys():
            rarity = math.log(
                1 + (len(documents) - frequency[word] + 0.5) / (frequency[word] + 0.5)
            )
            length = 1 - B + B * len(document) / mean
            score += rarity * counts[word] * (K1 + 1) / (counts[word] + K1 * length)
        scores.append(score)
    return scores


def words(text: str) -> list[str]:
    """Split into lower-case words."""
    return re.findall(r"\w+", text.lower())


if __name__ == "__main__":
    serve(Bm25(), *sys.argv[1:])
