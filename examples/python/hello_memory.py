"""The shortest memory system: answer with the last turn that shares a word with the question.

Start it with: python examples/python/hello_memory.py 127.0.0.1:50062
"""

import re
import sys
from typing import Any

from cbench_client import serve


class LastMention:
    """Answers with the last turn that shares a word with the question."""

    name = "last-mention"
    version = "1"

    def __init__(self) -> None:
        self._said: list[str] = []

    def reset(self) -> None:
        self._said = []

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self._said += [turn["content"] for turn in turns]

    def query(self, question: str) -> str:
        asked = words(question)
        return next((text for text in reversed(self._said) if asked & words(text)), "nothing")


def words(text: str) -> set[str]:
    """Return the words that are long enough to mean something."""
    return set(re.findall(r"\w{4,}", text.lower()))


if __name__ == "__main__":
    # The class, not an object: each conversation gets its own object.
    serve(LastMention, *sys.argv[1:])
