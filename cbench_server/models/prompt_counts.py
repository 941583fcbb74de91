"""Counts of prompt tokens, ours and the endpoint's: whether a prompt was cut without a word."""

import statistics
from collections import deque
from threading import Lock

_SEEN = 64
_ENOUGH_SEEN = 8
# An endpoint counts other tokens than we do, and for some scripts half as many.
_LEAST_SHARE = 0.4
_LEAST_OF_USUAL = 0.7
_LEAST_MISSING = 64
# Prompts of so many lengths, so far apart, are not of one length by chance.
_ENOUGH_ALIKE = 3
_APART = 1.15


class PromptCounts:
    """What one endpoint has reported of prompts, beside what they were by our count.

    Its tokens are not ours, so that what counts is how many of them it usually
    makes of ours. Where most prompts are cut, that is no measure; but then
    prompts of many lengths all come to the same number of tokens, the largest
    that it ever reports: its window.
    """

    def __init__(self) -> None:
        self._shares: deque[float] = deque(maxlen=_SEEN)
        self._largest = 0
        self._sent_of_largest: set[int] = set()
        self._lock = Lock()

    def is_cut(self, sent: int, reported: object) -> bool:
        """Take a pair of counts, and tell whether the model read far less than it was sent."""
        if not isinstance(reported, int) or not sent or not reported:
            return False
        with self._lock:
            return self._take(sent, reported)

    def _take(self, sent: int, reported: int) -> bool:
        is_at_window = self._is_at_window(sent, reported)
        share = reported / sent
        usual = statistics.median(self._shares) if len(self._shares) >= _ENOUGH_SEEN else 0.0
        least = max(_LEAST_SHARE, _LEAST_OF_USUAL * usual)
        if share < least and sent * (usual or 1.0) - reported > _LEAST_MISSING:
            return True
        if not is_at_window:
            self._shares.append(share)
        return is_at_window

    def _is_at_window(self, sent: int, reported: int) -> bool:
        if reported > self._largest:
            self._largest, self._sent_of_largest = reported, set()
        if reported < self._largest:
            return False
        alike = self._sent_of_largest
        if reported >= sent:
            return False
        if len(alike) < _SEEN:
            alike.add(sent)
        shortest, longest = min(alike), max(alike)
        is_spread = longest > _APART * shortest and longest - shortest > _LEAST_MISSING
        return len(alike) >= _ENOUGH_ALIKE and is_spread
