"""Differences of two texts, word by word, in colours or in marks."""

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_WORDS = re.compile(r"\s*\S+|\s+")
_CONTEXT = 12
_MAX_WORDS = 20_000


class Piece(NamedTuple):
    """A stretch of text that both have (`=`), or only the one before (`-`) or after (`+`)."""

    kind: str
    text: str


def differences(before: str, after: str) -> Iterator[Piece]:
    """Yield the stretches of two texts, in order; texts that are too long as one of each."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if len(old) + len(new) > _MAX_WORDS:
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        yield from _pieces((("=", old[:same]), ("-", old[same:]), ("+", new[same:])))
        return
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from _pieces((("=", old[a:b]),))
        else:
            yield from _pieces((("-", old[a:b]), ("+", new[c:d])))


def shortened(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Leave out the middle of long stretches, and say how much."""
    for piece in pieces:
        words = _WORDS.findall(piece.text)
        left_out = len(words) - 2 * _CONTEXT
        if left_out < _CONTEXT:
            yield piece
            continue
        yield Piece(piece.kind, "".join(words[:_CONTEXT]))
        yield Piece("…", f" [… {left_out:,} words …]")
        yield Piece(piece.kind, "".join(words[-_CONTEXT:]))


def drawn(pieces: Iterable[Piece], *, in_colour: bool) -> str:
    """Draw removed words struck out in red, added ones in green; or [-these-] {+and these+}."""
    if in_colour:
        styles = {"-": "\x1b[9;31m{}\x1b[0m", "+": "\x1b[32m{}\x1b[0m", "…": "\x1b[2m{}\x1b[0m"}
    else:
        styles = {"-": "[-{}-]", "+": "{{+{}+}}"}
    parts = []
    for kind, text in pieces:
        # Marks hug the words and leave the space between them outside.
        space = text[: len(text) - len(text.lstrip())]
        style = styles.get(kind, "{}")
        parts.append(space + style.format(text[len(space) :]) if text.strip() else text)
    return "".join(parts)


def _pieces(found: Iterable[tuple[str, list[str]]]) -> Iterator[Piece]:
    for kind, words in found:
        if words:
            yield Piece(kind, "".join(words))
