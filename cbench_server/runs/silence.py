"""Silence: one that is there but never answers is given up when one that is away would be.

Only time in which it was asked counts: not that in which it was away, in which others were timed,
or in which the daemon itself stood still.
"""

import math
from collections.abc import Callable

from cbench_server.errors import RunFailed
from cbench_server.results import Failure

LATE = "DEADLINE_EXCEEDED"
# So many calls come to nothing before that, at least, and none counts for more than its share.
_LEAST_CALLS = 5


class Silence:
    """What has been heard of a system or a reader.

    Args:
        reason: Of the failure of a run without it.
        limit: Seconds until the run fails.
        is_heard: Whether it has answered before, so that one silence does not tell.
    """

    def __init__(
        self, who: str, reason: str, limit: float, clock: Callable[[], float], *, is_heard: bool
    ) -> None:
        self._who = who
        self._reason = reason
        self._limit = limit
        self._clock = clock
        self._is_heard = is_heard
        self._calls = 0
        self._seconds = 0.0
        """How long it was asked in vain; calls at the same time count once."""
        self._until = -math.inf
        self._said = ""

    def heard(self) -> None:
        """Take note of an answer."""
        self._is_heard = True

    def note(self, failure: Failure, sent_at: float) -> None:
        """Take note of how a call failed: in silence, or by words of somebody who is there."""
        if failure.reason != LATE:
            self._is_heard |= failure.origin != "transport"
            return
        now = self._clock()
        since = max(sent_at, self._until)
        self._seconds += min(now - since, self._limit / _LEAST_CALLS)
        self._until = now
        self._calls += 1
        self._said = failure.message.rstrip(".")

    def check(self) -> None:
        """Raise RunFailed if it was silent from the first call on, for too long."""
        if self._is_heard or self._calls < _LEAST_CALLS or self._seconds < self._limit:
            return
        message = (
            f"{self._who} has answered none of {self._calls} calls in {self._seconds:.0f}s: "
            f"{self._said}. It may hang, or need more time for a call."
        )
        raise RunFailed(Failure("transport", self._reason, message), who=self._who)
