"""A memory: find the turns nearest to a question by embeddings from a wheel.

Install it with: pip install -r constraints/embedding.txt
Start it with: python examples/python/embedding_memory.py 127.0.0.1:50062
"""

import sys
from pathlib import Path
from typing import Any

import wordllama

from cbench_client import serve

# Its files are in the wheel, and are not looked for on the network.
MODEL = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
TOP = 8


class EmbeddingMemory:
    """Returns the eight nearest turns, oldest first; a reader answers from them."""

    name = "embedding-memory"
    version = "1"

    def __init__(self) -> None:
        self._said: list[str] = []

    def reset(self) -> None:
        self._said = []

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self._said += [
            f"{turn.get('speaker') or turn['role']}: {turn['content']}" for turn in turns
        ]

    def query(self, question: str) -> dict[str, str]:
        vectors = MODEL.embed([question, *self._said], norm=True)
        nearness = vectors[1:] @ vectors[0]
        nearest = sorted(range(len(self._said)), key=lambda place: -nearness[place])[:TOP]
        return {"context": "\n".join(self._said[place] for place in sorted(nearest))}


if __name__ == "__main__":
    # The class, not an object: each conversation gets its own object.
    serve(EmbeddingMemory, *sys.argv[1:])
