"""Silence: one that is there but never answers is given up when one that is away would be."""

from collections.abc import Callable

from cbench_server.errors import RunFailed
from cbench_server.results import Failure

LATE = "DEADLINE_EXCEEDED"
# Calls that come to nothing before that, at least.
_LEAST_UNHEARD = 5


class Silence:
    """What has been heard of a system, an evaluator or a reader.

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
        self._since = 0.0
        self._said = ""

    def heard(self) -> None:
        """Take note of a sign of life."""
        self._is_heard = True

    def note(self, failure: Failure, sent_at: float) -> None:
        """Take note of how a call failed: in silence, or by words of somebody who is there."""
        if failure.reason != LATE:
            self._is_heard |= failure.origin != "transport"
            return
        self._since = self._since if self._calls else sent_at
        self._calls += 1
        self._said = failure.message.rstrip(".")

    def check(self) -> None:
        """Raise RunFailed if there was silence from the first call on, for too long."""
        seconds = self._clock() - self._since
        if self._is_heard or self._calls < _LEAST_UNHEARD or seconds < self._limit:
            return
        message = (
            f"{self._who} has answered none of {self._calls} calls in {seconds:.0f}s: "
            f"{self._said}. It may hang, or need more time for a call."
        )
        raise RunFailed(Failure("transport", self._reason, message), who=self._who)
