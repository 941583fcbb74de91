"""Who is given up for never answering, by a clock that is set by hand."""

import pytest

from cbench_server.errors import RunFailed
from cbench_server.results import Failure
from cbench_server.runs.silence import Silence

LATE = Failure("system", "DEADLINE_EXCEEDED", "no answer within 60s.")


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Asked:
    """A system that is asked, and given up after 600 seconds."""

    def __init__(self, *, limit: float = 600.0, is_heard: bool = False) -> None:
        self.clock = Clock()
        self.silence = Silence("it", "SYSTEM_GONE", limit, self.clock, is_heard=is_heard)

    def call(self, failure: Failure = LATE, seconds: float = 60.0, beside: int = 1) -> None:
        """Make some calls at the same time, which all end in this way after so long."""
        sent_at = self.clock.now
        self.clock.now += seconds
        for _ in range(beside):
            self.silence.note(failure, sent_at)

    @property
    def is_given_up(self) -> bool:
        try:
            self.silence.check()
        except RunFailed:
            return True
        return False

    def calls_until_given_up(self, seconds: float, beside: int = 1) -> int:
        for made in range(1, 1000):
            self.call(seconds=seconds, beside=beside)
            if self.is_given_up:
                return made
        raise AssertionError("it is called for ever")


@pytest.mark.parametrize(
    ("seconds", "beside", "calls"),
    [(60.0, 1, 10), (60.0, 32, 10), (1.0, 1, 600), (3600.0, 1, 5), (3600.0, 32, 5)],
)
def test_it_is_asked_as_long_as_one_that_is_away_and_five_times_at_least(
    seconds: float, beside: int, calls: int
) -> None:
    assert Asked().calls_until_given_up(seconds, beside) == calls


def test_what_was_in_vain_is_told() -> None:
    asked = Asked()
    for _ in range(10):
        asked.call()
    said = "it has answered none of 10 calls in 600s: no answer within 60s. It may hang"
    with pytest.raises(RunFailed, match=said):
        asked.silence.check()


def test_time_in_which_it_was_not_asked_does_not_count() -> None:
    asked = Asked()
    asked.call()
    # Others were timed; it was away; nobody had a call for it.
    asked.clock.now += 10_000
    for _ in range(8):
        asked.call()
    assert not asked.is_given_up
    asked.call()
    assert asked.is_given_up


def test_a_daemon_that_stood_still_blames_nobody() -> None:
    asked = Asked()
    for _ in range(4):
        asked.call()
    asked.call(seconds=10_000, beside=32)
    assert not asked.is_given_up


@pytest.mark.parametrize("limit", [0.0, 600.0])
@pytest.mark.parametrize(
    "failure",
    [
        Failure("system", "EXCEPTION", "boom"),
        Failure("system", "RESOURCE_EXHAUSTED", "later"),
    ],
)
def test_whoever_says_anything_is_there(failure: Failure, limit: float) -> None:
    asked = Asked(limit=limit)
    asked.call(failure, seconds=1)
    asked.call(seconds=10_000, beside=32)
    for _ in range(100):
        asked.call()
    assert not asked.is_given_up


def test_a_connection_that_fails_says_nothing() -> None:
    asked = Asked(limit=0.0)
    asked.call(Failure("transport", "UNAVAILABLE", "broken"), beside=9)
    # Not a call came to nothing yet, as far as is known.
    assert not asked.is_given_up
    asked.call(beside=5)
    assert asked.is_given_up


def test_whoever_has_answered_once_is_not_given_up() -> None:
    for asked in (Asked(is_heard=True), Asked()):
        asked.call()
        asked.silence.heard()
        for _ in range(100):
            asked.call()
        assert not asked.is_given_up
