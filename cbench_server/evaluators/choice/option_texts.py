"""Finding the texts of a question's options in a response."""

import re
import string
import unicodedata
from collections.abc import Sequence
from functools import cached_property

_ARTICLE = re.compile(r"(?:a|an|the)\s+", re.IGNORECASE)
# A letter alone is an answer's letter, not an option's text.
_LETTER = re.compile(r"\W*[A-Za-z]\W*")
_TRIMMED = " \t\n.,;:!?\"'“”‘’*`$"
_BEFORE, _AFTER = r"(?<![\w.\-−])", r"(?!\w|[.,]\d)"
_BEGINS, _ENDS = re.compile(_BEFORE), re.compile(_AFTER)
_MAX_OPTION = 2_000


class OptionTexts:
    """The texts, lettered from A in order; where one contains another, the longer is found."""

    def __init__(self, options: Sequence[str]) -> None:
        letters: dict[str, set[str]] = {}
        for letter, option in zip(string.ascii_uppercase, options, strict=False):
            text = _normal(option)
            if text and not _LETTER.fullmatch(text) and len(text) <= _MAX_OPTION:
                letters.setdefault(text, set()).add(letter)
        self._letters = {text: letters[text] for text in sorted(letters, key=len, reverse=True)}

    def at(self, text: str, start: int) -> str | None:
        """Return the letter of the one option whose text stands there, after an article or none."""
        found = self._starting(text, start)
        return found.pop() if len(found) == 1 else None

    def begins_with_letter(self, text: str, start: int) -> bool:
        """Whether the letter there is the first word of an option's text: "A dog", "I and II"."""
        return text[start + 1 : start + 2] == " " and bool(self._starting(text, start))

    def present(self, text: str) -> set[str]:
        """Return the letters of all options whose texts appear; equal texts count for each."""
        found: set[str] = set()
        if self._anywhere is not None:
            for match in self._anywhere.finditer(text):
                found |= self._letters.get(_normal(match[0]), set())
        return found

    def positions(self, text: str) -> set[int]:
        """Return every position that is within an option's text."""
        if self._anywhere is None:
            return set()
        return {at for match in self._anywhere.finditer(text) for at in range(*match.span())}

    def _starting(self, text: str, start: int) -> set[str]:
        """Return the letters of the longest text that stands there, after an article or none.

        Most responses need no more than this, and comparing is much cheaper
        than compiling a pattern for every question.
        """
        if not self._letters or not _BEGINS.match(text, start):
            return set()
        longest = len(next(iter(self._letters)))
        here = " ".join(text[start : start + 2 * longest + 10].casefold().split())
        article = _ARTICLE.match(here)
        for candidate in (here, here[article.end() :] if article else ""):
            for option, letters in self._letters.items():
                if candidate.startswith(option) and _ENDS.match(candidate, len(option)):
                    return set(letters)
        return set()

    @cached_property
    def _anywhere(self) -> re.Pattern[str] | None:
        texts = "|".join(r"\s+".join(map(re.escape, text.split())) for text in self._letters)
        return re.compile(f"{_BEFORE}(?:{texts}){_AFTER}", re.IGNORECASE) if texts else None


def _normal(text: str) -> str:
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip(_TRIMMED)
    without = _ARTICLE.sub("", plain, count=1) if _ARTICLE.match(plain) else plain
    return without or plain
