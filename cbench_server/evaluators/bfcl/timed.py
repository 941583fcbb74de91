"""Patterns with a time limit, for those of BFCL's that a hostile response could keep busy."""

from typing import Any

import regex

# Of the processor; a usual argument takes microseconds.
_SECONDS = 0.02


class Timed:
    """One pattern; a text that takes it too long raises TimeoutError."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern = regex.compile(pattern, flags)

    def begins(self, text: str) -> Any:
        """Return the match at the beginning of the text, or None."""
        return self._pattern.match(text, timeout=_SECONDS)

    def found(self, text: str) -> Any:
        """Return the first match anywhere in the text, or None."""
        return self._pattern.search(text, timeout=_SECONDS)

    def each(self, text: str) -> list[Any]:
        """Return what all matches hold, as `re.findall` does."""
        return list(self._pattern.findall(text, timeout=_SECONDS))
