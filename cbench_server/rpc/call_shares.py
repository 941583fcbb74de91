"""Shares of the calls that a daemon serves at once, by the name of the caller."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cbench_server.errors import LimitReached


class CallShares:
    """Lets in so many calls; one name has at most half of them where there are several.

    Args:
        is_shared: Whether there are callers of several names.
    """

    def __init__(self, limit: int, is_shared: Callable[[], bool]) -> None:
        self._limit = limit
        self._is_shared = is_shared
        self._held: Counter[str] = Counter()
        self._total = 0

    @contextmanager
    def place(self, name: str) -> Iterator[None]:
        """Hold one of the calls for the block."""
        most = max(1, self._limit // 2) if self._is_shared() else self._limit
        if self._total >= self._limit or self._held[name] >= most:
            whose = f'of "{name}" ' if name and self._held[name] >= most else ""
            raise LimitReached(
                f"{self._held[name] if whose else self._total} calls {whose}are served, the most "
                "this daemon takes at once. Try again later, or raise max_calls."
            )
        self._held[name] += 1
        self._total += 1
        try:
            yield
        finally:
            self._total -= 1
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]
