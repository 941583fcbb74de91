"""A compressor: keep the sentences that matter most to the question.

Start it with: python examples/python/extractive.py 127.0.0.1:50061
"""

import math
import re
import sys
from collections import Counter
from typing import Any

from cbench_client import serve


class Extractive:
    """Keeps the sentences nearest to the question by tf-idf, in their order."""

    name = "extractive"
    version = "1"

    def process(self, example: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        ratio = float(options.get("ratio", 0.3))
        kept = best_sentences(example["context"], example.get("question", ""), ratio)
        return {**example, "context": kept}


def best_sentences(context: str, question: str, ratio: float) -> str:
    """Return at most `ratio` of the words, in whole sentences, and at least one sentence."""
    sentences = re.findall(r"\S.*?(?:[.!?](?=\s)|$)", context, re.S)
    bags = [words(sentence) for sentence in sentences]
    frequency = Counter(word for bag in bags for word in set(bag))
    rarity = {word: math.log(len(bags) / count) + 0.1 for word, count in frequency.items()}
    asked = set(words(question))

    def score(place: int) -> float:
        # A fact is often told next to the sentence that names its subject.
        near = [set(bags[i]) & asked for i in (place - 1, place, place + 1) if 0 <= i < len(bags)]
        own = sum(rarity[word] for word in set(bags[place]) & asked)
        around = sum(rarity[word] for shared in near for word in shared)
        return (own + 0.3 * around) / math.sqrt(len(bags[place]) + 5)

    budget = ratio * len(context.split())
    chosen: list[int] = []
    for place in sorted(range(len(bags)), key=score, reverse=True):
        budget -= len(sentences[place].split())
        if chosen and budget < 0:
            break
        chosen.append(place)
    return " ".join(sentences[place] for place in sorted(chosen))


def words(text: str) -> list[str]:
    """Split into lower-case words, without the endings that questions change."""
    return [re.sub(r"(ing|ed|es|s)$", "", word) for word in re.findall(r"\w+", text.lower())]


if __name__ == "__main__":
    serve(Extractive(), *sys.argv[1:])
