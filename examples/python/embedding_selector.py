"""A selector by embeddings: keep the sentences that mean most like the question.

The weights come inside the package, so that nothing is downloaded when it runs. Install it with
pip install -r constraints/embedding.txt, then: python examples/python/embedding_selector.py
"""

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import wordllama

from cbench_client import serve


class EmbeddingSelector:
    """Keeps the sentences nearest to the question by the cosine of their embeddings."""

    name = "embedding-selector"
    version = "1"

    def __init__(self) -> None:
        # Where it looks by itself, this version lacks its tokenizer, which is in the package too.
        package = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)

    def process(self, example: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        ratio = float(options.get("ratio", 0.3))
        sentences = re.findall(r"\S.*?(?:[.!?](?=\s)|$)", example["context"], re.S)
        if len(sentences) < 2:
            return example
        asked = example.get("question") or sentences[0]
        vectors = self._model.embed([asked, *sentences], norm=True)
        nearest = np.argsort(-(vectors[1:] @ vectors[0]), kind="stable")
        return {**example, "context": chosen(sentences, nearest.tolist(), ratio)}


def chosen(sentences: list[str], order: list[int], ratio: float) -> str:
    """Return at most `ratio` of the words, in whole sentences, and at least one sentence."""
    budget = ratio * sum(len(sentence.split()) for sentence in sentences)
    kept: list[int] = []
    for place in order:
        budget -= len(sentences[place].split())
        if kept and budget < 0:
            break
        kept.append(place)
    return " ".join(sentences[place] for place in sorted(kept))


if __name__ == "__main__":
    serve(EmbeddingSelector(), *sys.argv[1:])
