"""Formulas in running text: what stands between dollars or LaTeX brackets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SPAN = re.compile(
    r"(?<!\\)\$\$(?P<display>[^$]{1,2000})\$\$"
    r"|\\\[(?P<bracket>(?:[^\\]|\\(?!\])){1,2000})\\\]"
    r"|\\\((?P<inline>(?:[^\\\n]|\\(?!\))){1,500})\\\)"
    r"|(?<![\\\d])\$(?P<dollar>(?:[^$\n\\]|\\[^\n]){1,500})\$",
)
# Two words in a row, or a price before a word: the dollars are money.
_PROSE = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}[ ,]+[A-Za-z]{2,}|^\d[\d,.]*\s+[A-Za-z]{2,}")
_TEXT_COMMAND = re.compile(r"\\(?:text\w*|mathrm|mbox)\s*\{[^{}]*\}")
_JOINT = re.compile(r"\s*(?:,\s*and|,\s*or|and|or|,)\s*")
_PERCENT = re.compile(r"\s*(?:\\?%|percent\b|pct\b)")


@dataclass(frozen=True, slots=True)
class Span:
    """A formula, or several that are listed together, and where it ends in the text."""

    text: str
    start: int
    end: int


def first_span(text: str, *, at_start: bool = False) -> Span | None:
    """Find the first formula; with `at_start`, only one that the text begins with."""
    for span in _joined(text[:4_000]):
        return span if span.start == 0 or not at_start else None
    return None


def last_span(text: str) -> Span | None:
    """Find the last formula."""
    last = None
    for span in _joined(text):
        last = span
    return last


def _joined(text: str) -> Iterator[Span]:
    """Find formulas, those listed with commas, and, or as one."""
    listed: Span | None = None
    for span in _spans(text):
        if listed is None:
            listed = span
        elif _JOINT.fullmatch(text, listed.end, span.start):
            listed = Span(f"{listed.text}, {span.text}", listed.start, span.end)
        else:
            yield listed
            listed = span
    if listed is not None:
        yield listed


def _spans(text: str) -> Iterator[Span]:
    position = 0
    while found := _SPAN.search(text, position):
        content = next(part for part in found.groups() if part is not None).strip()
        if found["dollar"] and _PROSE.search(_TEXT_COMMAND.sub("", content)):
            position = found.start() + 1
            continue
        position = found.end()
        percent = _PERCENT.match(text, position)
        end = percent.end() if percent else position
        if content:
            yield Span(content + ("\\%" if percent else ""), found.start(), end)
