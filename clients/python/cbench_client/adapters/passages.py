"""Contexts as passages, for libraries that choose among documents, and what is kept of them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s)|$)", re.S)
_PARAGRAPH = re.compile(r"\n\s*\n")
WORDS = 60
PLACE = "cbench_place"
"""The key of a passage's metadata that tells where in the context it stood."""


def passages_of(context: str, words: int = WORDS) -> list[str]:
    """Split at empty lines, and longer paragraphs into groups of sentences of about `words`."""
    found: list[str] = []
    for paragraph in _PARAGRAPH.split(context):
        group: list[str] = []
        for sentence in _SENTENCE.findall(paragraph):
            group.append(sentence)
            if sum(len(each.split()) for each in group) >= words:
                found.append(" ".join(group))
                group = []
        if group:
            found.append(" ".join(group))
    return found


def joined(kept: Iterable[tuple[Mapping[str, Any], str]]) -> str:
    """Join what is left, each with its metadata: in the order of the context, as far as known."""
    placed = [
        (metadata.get(PLACE, float("inf")), order, text)
        for order, (metadata, text) in enumerate(kept)
    ]
    return "\n\n".join(text for _, _, text in sorted(placed))


def question_of(example: Mapping[str, Any]) -> str:
    """Return what is asked of an example."""
    return str(example.get("question") or example.get("instruction") or "")
