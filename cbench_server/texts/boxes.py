"""Boxed answers: what LaTeX solutions put into `\\boxed{}`."""

import re
from dataclasses import dataclass

_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
_BRACE = re.compile(r"\\[{}]|[{}]")
_WORD = re.compile(r"[^\s$.,;]*")
_LISTING = re.compile(r"[,;]|\b(?:and|or)\b")
_MAX_BOXES = 10


@dataclass(frozen=True, slots=True)
class Box:
    """What is in a box, and where the box ends in the text."""

    content: str
    end: int


def last_boxes(text: str) -> list[Box]:
    """Return the last box that is not empty, after those that are listed together with it."""
    boxes: list[Box] = []
    start = len(text)
    for command in reversed([*_BOX.finditer(text)][-_MAX_BOXES:]):
        box = _box(text, command.end())
        if boxes and not _is_list(text[box.end : start]):
            break
        if box.content:
            boxes.append(box)
            start = command.start()
    return boxes[::-1]


def _is_list(between: str) -> bool:
    """Whether boxes with this between them are one list."""
    return len(between) < 10 or (len(between) < 70 and bool(_LISTING.search(between)))


def _box(text: str, start: int) -> Box:
    """Read what is boxed; up to the end of the text if the box is not closed."""
    if not text.startswith("{", start):
        word = _WORD.match(text, start)
        end = word.end() if word else start
        return Box(text[start:end], end)
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return Box(text[start + 1 : brace.start()].strip(), brace.end())
    return Box(text[start + 1 :].strip(), len(text))
