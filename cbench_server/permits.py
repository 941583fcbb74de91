"""Who may call a system next: a limit that adapts, a window of unsettled rows, a byte budget."""


class ByteBudget:
    """Bounds the bytes of examples and outputs a run holds in memory.

    One row is always allowed, however large, so that a row over the budget
    runs alone instead of never.
    """

    def __init__(self, limit: int = 256 * 1024 * 1024) -> None:
        self._limit = limit
        self._held = 0

    def has_room(self, size: int) -> bool:
        """Tell whether `size` more bytes may be held."""
        return self._held == 0 or self._held + size <= self._limit

    def hold(self, size: int) -> None:
        """Count bytes as held."""
        self._held += size

    def release(self, size: int) -> None:
        """Count bytes as gone."""
        self._held -= size


class AdaptiveLimit:
    """How many calls may be in flight: halved when the system says it is full, regrown slowly."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.current = maximum
        self._successes = 0

    def succeeded(self) -> None:
        """Count an answer; a whole round of answers earns one more call in flight."""
        if self.current == self.maximum:
            return
        self._successes += 1
        if self._successes >= self.current:
            self.current += 1
            self._successes = 0

    def exhausted(self) -> None:
        """React to a system that is full."""
        self.current = max(1, self.current // 2)
        self._successes = 0
