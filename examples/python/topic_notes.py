"""A memory system: it files every sentence under its words and looks them up again.

Start it with `python examples/python/topic_notes.py`, which prints where it listens, then:
cbench memory run --system HOST:PORT --dataset mini-memory
"""

import heapq
import re
from collections import defaultdict
from typing import Any

from cbench_client import serve

SENTENCES_GIVEN = 5


class TopicNotes:
    """Remembers sentences by their words, and gives those that share the rarest ones."""

    name = "topic-notes"
    version = "1"

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._sentences: list[str] = []
        self._about: dict[str, list[int]] = defaultdict(list)

    def ingest(self, turns: list[dict[str, Any]]) -> dict[str, Any]:
        for turn in turns:
            said_by = f"[{turn.get('time', '')}] {turn.get('speaker') or turn['role']}"
            for sentence in re.split(r"(?<=[.!?])\s+", turn["content"]):
                for word in words(sentence):
                    self._about[word].append(len(self._sentences))
                self._sentences.append(f"{said_by}: {sentence}")
        return {"stored_bytes": sum(map(len, self._sentences))}

    def query(self, question: str) -> dict[str, Any]:
        # Rare words say more than common ones.
        weights: defaultdict[int, float] = defaultdict(float)
        for word in words(question):
            for place in self._about.get(word, ()):
                weights[place] += 1 / len(self._about[word])
        found = sorted(heapq.nlargest(SENTENCES_GIVEN, weights, key=weights.__getitem__))
        # No `response`: a reader answers from this, or the answer is looked for in it.
        return {"context": "\n".join(self._sentences[place] for place in found)}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    # The class, not an object: every conversation gets its own memory.
    serve(memory_systems=[TopicNotes])
