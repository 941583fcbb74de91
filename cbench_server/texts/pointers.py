"""Retrieval pointers: places where a text says that more of it can be had elsewhere.

Compressors that keep what they cut leave such places behind: a handle in
brackets, or words that tell a model to call a tool. Nobody follows them here.
"""

import re
from collections.abc import Iterator
from itertools import islice

# A name and a hash in brackets of any kind, such as `<<store:3fa9c1 12 rows>>`.
_HANDLE = re.compile(
    r"(?:<<?|\[\[?|\{\{?|⟦|【)\s*[a-z][\w-]{1,23}\s*[:=#]\s*"
    r"(?=[a-f]*\d)[0-9a-f]{6,64}\b[^\n<>\[\]{}⟦⟧【】]{0,200}(?:>>?|\]\]?|\}\}?|⟧|】)",
    re.IGNORECASE,
)
_BRACKETS = "<[{⟦【"
_VERBS = ("retriev", "expand", "fetch", "recover", "restor", "recall", "unfold", "rehydrat")
# Written in one of three ways, which are found far sooner than a pattern that ignores case.
_FORMS = tuple(form for verb in _VERBS for form in (verb, verb.capitalize(), verb.upper()))
# The name by which a verb before it tells to get something, such as `retrieve it with id a91`.
_NAMED = re.compile(
    r"\b(?:hash|id|key|ref|reference|token|handle|pointer)\b\s*[:=]?\s*[\"'`(<]?[\w-]*\d[\w-]*",
    re.IGNORECASE,
)
_NEAR = 100
"""Characters after a verb in which the name must begin, in the same sentence."""
_BREAK = re.compile(r"[\n.;\]>]")
# What follows one in the name of a tool that is called, such as `expand_chunk("a91f")`.
_CALL = re.compile(r"\w*\(\s*[\"'][^\"'\n]{3,80}[\"']")
_MOST = 1000
_MOST_LOOKED_AT = 10_000


def count_pointers(text: str, original: str) -> int:
    """Count the pointers in a text that its original does not have, up to a thousand."""
    found: list[tuple[int, int]] = []
    for start, end in islice(_candidates(text), _MOST_LOOKED_AT):
        # One place may have a handle and words about it.
        is_new = all(start >= other_end or end <= other for other, other_end in found)
        if is_new and text[start:end] not in original:
            found.append((start, end))
            if len(found) == _MOST:
                break
    return len(found)


def _candidates(text: str) -> Iterator[tuple[int, int]]:
    if any(bracket in text for bracket in _BRACKETS):
        yield from (match.span() for match in _HANDLE.finditer(text))
    lowered = text.lower()
    if any(verb in lowered for verb in _VERBS):
        for place in islice(_places(text), _MOST_LOOKED_AT):
            if match := _CALL.match(text, place) or _order(text, place):
                yield place, match.end()


def _order(text: str, place: int) -> re.Match[str] | None:
    """Find the name after a verb."""
    match = _NAMED.search(text, place, place + _NEAR)
    if match is None or _BREAK.search(text, place, match.start()):
        return None
    return match


def _places(text: str) -> Iterator[int]:
    """Yield where verbs begin, one verb after the other."""
    for form in _FORMS:
        place = text.find(form)
        while place >= 0:
            yield place
            place = text.find(form, place + len(form))
