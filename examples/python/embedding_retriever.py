"""A compressor: keep the sentences nearest to the question by embeddings from a wheel.

Install it with: pip install -r constraints/embedding.txt
Start it with: python examples/python/embedding_retriever.py 127.0.0.1:50061
"""

import re
import sys
from pathlib import Path
from typing import Any

import wordllama

from cbench_client import serve


class EmbeddingRetriever:
    """Keeps the nearest sentences, in their order, up to a share of the words."""

    name = "embedding-retriever"
    version = "1"

    def __init__(self) -> None:
        # The files are in the wheel, and are not looked for on the network.
        folder = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def process(self, example: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
        ratio = float(options.get("ratio", 0.3))
        sentences = re.findall(r"\S.*?(?:[.!?](?=\s)|$)", example["context"], re.S)
        vectors = self._model.embed([example.get("question", ""), *sentences], norm=True)
        nearness = vectors[1:] @ vectors[0]
        budget = ratio * len(example["context"].split())
        chosen: list[int] = []
        for place in sorted(range(len(sentences)), key=lambda each: -nearness[each]):
            budget -= len(sentences[place].split())
            if chosen and budget < 0:
                break
            chosen.append(place)
        return {**example, "context": " ".join(sentences[place] for place in sorted(chosen))}


if __name__ == "__main__":
    serve(EmbeddingRetriever(), *sys.argv[1:])
