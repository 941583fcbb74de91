"""Counts of prompt tokens, ours and the endpoint's: whether a prompt was cut without a word."""

import statistics
import unicodedata
from collections import Counter, deque
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

_SEEN = 256
_ENOUGH_SEEN = 8
_LEAST_OF_USUAL = 0.7
_LEAST_SHARE = 0.4
# Of English prose, by any tokenizer of today; in other scripts a token has fewer.
_CHARACTERS_OF_TOKEN = 4.0
_LEAST_MISSING = 64
# Prompts are of one kind where a character of the same script makes about as many of our tokens.
_OF_A_KIND = 1.25
_LOOKED_AT = 256
# Prompts of so many lengths, so far apart, are not of one length by chance.
_ENOUGH_ALIKE = 3
_MOST_ALIKE = 64
_APART = 1.15


class _Prompt(NamedTuple):
    """One prompt: tokens and characters that we sent, tokens that were reported."""

    script: str
    sent: int
    characters: int
    reported: int

    @property
    def share(self) -> float:
        return self.reported / self.sent

    def is_like(self, other: "_Prompt") -> bool:
        mine, others = self.sent * other.characters, other.sent * self.characters
        is_as_dense = mine <= _OF_A_KIND * others and others <= _OF_A_KIND * mine
        return is_as_dense and self.script == other.script


class PromptCounts:
    """What one endpoint has reported of prompts, beside what they were by our count.

    Its tokens are not ours: for some scripts they are a third of ours, and some
    endpoints count characters. So what counts is how many tokens it usually makes
    of prompts of this kind. While too few of a kind were seen, a prompt was cut where the
    count is far too low both for its tokens and for its characters. Where most prompts are
    cut, what is usual is no measure; but then prompts of many lengths all come to
    the same number of tokens, the largest that it ever reports: its window.
    """

    def __init__(self) -> None:
        self._seen: deque[_Prompt] = deque(maxlen=_SEEN)
        self._largest = 0
        self._of_largest: set[_Prompt] = set()
        self._lock = Lock()

    def is_cut(self, text: str, sent: int, reported: object) -> bool:
        """Take a prompt's counts, and tell whether the model read far less than it was sent."""
        if not isinstance(reported, int) or not text or not sent or not reported:
            return False
        with self._lock:
            return self._take(_Prompt(_script(text), sent, len(text), reported))

    def _take(self, prompt: _Prompt) -> bool:
        is_at_window = self._is_at_window(prompt)
        if self._is_low(prompt):
            return True
        if not is_at_window:
            self._seen.append(prompt)
        return is_at_window

    def _is_low(self, prompt: _Prompt) -> bool:
        alike = [each.share for each in self._seen if each.is_like(prompt)]
        usual = statistics.median(alike) if len(alike) >= _ENOUGH_SEEN else 1.0
        if prompt.sent * usual - prompt.reported <= _LEAST_MISSING:
            return False
        if len(alike) >= _ENOUGH_SEEN and prompt.share < _LEAST_OF_USUAL * usual:
            return True
        least = min(prompt.sent, prompt.characters / _CHARACTERS_OF_TOKEN)
        return prompt.reported < _LEAST_SHARE * least

    def _is_at_window(self, prompt: _Prompt) -> bool:
        if prompt.reported > self._largest:
            self._largest, self._of_largest = prompt.reported, set()
        if prompt.reported < self._largest or prompt.reported >= prompt.sent:
            return False
        alike = self._of_largest
        if len(alike) < _MOST_ALIKE:
            alike.add(prompt)
        return (
            len(alike) >= _ENOUGH_ALIKE
            and _is_spread([each.sent for each in alike])
            # Texts of one length have one count where it is characters that are counted.
            and _is_spread([each.characters for each in alike])
        )


def _script(text: str) -> str:
    """Name the script that most letters of a text are of."""
    letters = [each for each in text[:: len(text) // _LOOKED_AT + 1] if each.isalpha()]
    scripts = Counter(unicodedata.name(each, "").partition(" ")[0] for each in letters)
    return max(scripts, key=lambda name: (scripts[name], name), default="")


def _is_spread(lengths: Sequence[int]) -> bool:
    shortest, longest = min(lengths), max(lengths)
    return longest > _APART * shortest and longest - shortest > _LEAST_MISSING
