"""Languages in which BFCL asks for calls: how they are read, and which types they have."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cbench_server.evaluators.bfcl import java, javascript
from cbench_server.evaluators.bfcl.calls import Call

_OTHER_THAN_PYTHON = re.compile(r"(?:simple_)?(java|javascript)")


@dataclass(frozen=True, slots=True)
class Language:
    """One language."""

    types: Mapping[str, type]
    lists: tuple[str, ...]
    """The types that say of what type their items are."""
    read: Callable[[str], list[Call]] | None = None
    """Reads a text of it; None for Python."""
    convert: Callable[[str, str, str], Any] | None = None
    """Gives the value of an argument, which is a text until its type is known."""


PYTHON = Language(
    {
        **dict.fromkeys(("string", "any"), str),
        "integer": int,
        "float": float,
        "boolean": bool,
        **dict.fromkeys(("array", "tuple"), list),
        "dict": dict,
    },
    ("array", "tuple"),
)
_OTHERS = {
    "java": Language(java.TYPES, java.LISTS, java.read_call, java.convert),
    "javascript": Language(
        javascript.TYPES, javascript.LISTS, javascript.read_call, javascript.convert
    ),
}


def language_of(category: str) -> Language:
    """Return the language that a category of the leaderboard asks for."""
    named = _OTHER_THAN_PYTHON.fullmatch(category)
    return _OTHERS[named[1]] if named else PYTHON
