"""One replica of a system: the process, what it has to do, and what is known of it."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from statistics import median

from cbench_server.models.level import Climb
from cbench_server.systems.caller import Answered, Call, Caller, Failed

LEAST_SEEN = 5
"""Answers by which a replica is compared with others."""
_LATEST = 9
_LAGS = 4.0
_LEAST_LAG_S = 0.05
_STUCK = 10.0
_LEAST_STUCK_S = 2.0


class Standing(Enum):
    """Whether a replica gets calls."""

    IN = "in"
    RESTING = "resting"
    """It failed or lagged, and is left out for a while."""
    AWAY = "away"
    """It cannot be reached."""
    REFUSED = "refused"
    """It is there, but not what the run began with."""


@dataclass(slots=True, eq=False)
class Asked:
    """A call that a replica has, and who wants to know of its end."""

    timeout: float
    answered: Answered
    failed: Failed
    sent_at: float = 0.0
    in_flight: int = 0
    halvings: int = 0


@dataclass(slots=True, eq=False)
class Replica:
    """One of several processes that serve the same system."""

    name: str
    caller: Caller
    is_connected: Callable[[], bool] = lambda: True
    check: Callable[[], Awaitable[str]] | None = None
    """Says in a sentence why it is not what the others are; empty if it is."""
    standing: Standing = Standing.IN
    width: int = 1
    """The most calls it gets at once."""
    climb: Climb = field(default_factory=Climb)
    calls: dict[Call, Asked] = field(default_factory=dict)
    """What it has to do, the oldest first."""
    scopes: set[str] = field(default_factory=set)
    """Of a memory system: the conversations that live in it."""
    strays: list[str] = field(default_factory=list)
    """Those that an earlier life of the run may have left in it, while it was away."""
    sent: int = 0
    lives: int = 0
    """How often it was lost."""
    is_reserved: bool = False
    """Whether it is kept for one call, which may be what kills replicas."""
    blames: int = 0
    """Calls in a row that it failed and another replica answered."""
    deaths: int = 0
    """How often in a row it was lost without an answer between."""
    rests: int = 0
    """How often it was left out, without being well for long since."""
    well: int = 0
    """Answers since it was left out."""
    left_out: int = 0
    """How often it was left out in all."""
    _seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_LATEST))
    _shares: deque[float] = field(default_factory=lambda: deque(maxlen=_LATEST))

    @property
    def is_there(self) -> bool:
        """Whether it can be called at all."""
        return self.standing in (Standing.IN, Standing.RESTING)

    @property
    def takes_calls(self) -> bool:
        """Whether it gets new ones."""
        return self.standing is Standing.IN and not self.is_reserved

    @property
    def load(self) -> tuple[float, int]:
        """How much it has to do; by it the next to be called is found."""
        return len(self.calls) / self.climb.limit, self.sent

    def begin_anew(self, limit: int, clock: Callable[[], float]) -> None:
        """Begin with so many calls at once, and forget how long they took."""
        self.climb = Climb(start=limit, cap=self.width, clock=clock)
        self._seconds.clear()
        self._shares.clear()

    def took(self, seconds: float, in_flight: int) -> None:
        """Take note of an answer."""
        self._seconds.append(seconds)
        self._shares.append(seconds / max(1, in_flight))

    @property
    def is_known(self) -> bool:
        """Whether it has answered often enough to be compared."""
        return len(self._seconds) >= LEAST_SEEN

    @property
    def seconds(self) -> float:
        """What its latest calls took, in the middle."""
        return median(self._seconds)

    @property
    def share(self) -> float:
        """The same for each of the calls that it had at once."""
        return median(self._shares)


def lag_of(replica: Replica, others: list[Replica]) -> tuple[float, float] | None:
    """Return what calls take at a replica that lags, and at the others; None if it does not.

    One that has more calls at once may take longer for each, and gets as much done. So it lags
    only if it takes four times as long both for a call, and for each of those it has at once.
    """
    known = [other for other in others if other.is_known]
    if not replica.is_known or not known:
        return None
    seconds, typical = replica.seconds, median(other.seconds for other in known)
    share = median(other.share for other in known)
    is_slow = seconds > _LAGS * typical and seconds - typical > _LEAST_LAG_S
    return (seconds, typical) if is_slow and replica.share > _LAGS * share else None


def stuck_for(replica: Replica, others: list[Replica], now: float) -> float | None:
    """Return for how long a replica has not answered its oldest call, if that is far too long."""
    known = [other.seconds for other in others if other.is_known]
    if not replica.calls or not known:
        return None
    waited = now - next(iter(replica.calls.values())).sent_at
    return waited if waited > max(_LEAST_STUCK_S, _STUCK * median(known)) else None
