"""Stuffing: contexts that keep names and numbers, and drop the text that says what they are about.

Whether the answer is still in a context is won by keeping every name. A reader of such a list
finds nothing in it, so these rows are marked.
"""

import functools
import re

from cbench_server.results import STUFFED
from cbench_server.spec import RunNote
from cbench_server.types import Example

_WORD = re.compile(r"[^\W_]+")
# Characters that are enough to tell, and few enough for the event loop.
_LOOKED_AT = 16 * 1024
# Little words begin sentences, and so stand among names.
_SHORTEST = 4
# Of fewer words nothing can be told: they may be the beginning of a sentence.
_FEWEST = 6
# Of the words of running text that are long enough, more than half are ordinary ones; of what
# cuts sentences, picks them, or drops words from them, at least a quarter.
_RUNNING = 1 / 2
_LISTED = 1 / 5
# A context that is such a list now and then is a line of a table.
_NOTED = 1 / 10


def stuffing_marks(original: Example, processed: Example) -> tuple[str, ...]:
    """Mark a context of which hardly a word is an ordinary one, though the original has many."""
    context, left = original.get("context"), processed.get("context")
    if not isinstance(context, str) or not isinstance(left, str) or len(left) >= len(context):
        return ()
    ordinary, names = _words(context[:_LOOKED_AT])
    if len(ordinary) < _RUNNING * (len(ordinary) + len(names)):
        return ()
    kept = {word.casefold() for word in _WORD.findall(left[:_LOOKED_AT])}
    said = len(kept & ordinary)
    whole = said + len(kept & names)
    return (STUFFED,) if whole >= _FEWEST and said <= _LISTED * whole else ()


@functools.lru_cache(maxsize=64)
def _words(context: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ordinary words, which a text has in lower case, and its names and numbers."""
    words = set(_WORD.findall(context))
    lower = {word for word in words if word.islower()}
    ordinary = frozenset(word for word in lower if len(word) >= _SHORTEST)
    return ordinary, frozenset(word.casefold() for word in words) - lower


def stuffing_note(system: str, count: int, rows: int) -> RunNote | None:
    """Say so where the score of a system stands on such contexts."""
    if not count or count < _NOTED * rows:
        return None
    text = (
        f"{system}: {count:,} of {rows:,} contexts are names and numbers without the text around "
        "them. The score only looks for the answer in them, so keeping every name pays; whether a "
        "model can still answer from them, --reader URL tells."
    )
    return RunNote(STUFFED, text, system)
