"""Replicas of a system, as one caller: each call goes to the process that has least to do.

No call is made twice at the same time, for a referee that hedges falsifies tails and bills. One
that is lost with its replica is made again by another; one with which two replicas have died is
failed. A call that a replica fails is asked of one other, which shows whose fault it is.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from cbench_server.errors import CallFailed
from cbench_server.limits import MAX_CONCURRENCY
from cbench_server.models.level import CAP
from cbench_server.results import Failure
from cbench_server.systems.caller import (
    Answer,
    Answered,
    Call,
    Caller,
    Failed,
    Process,
    Query,
    Route,
    SystemDescription,
)
from cbench_server.systems.homes import Homes
from cbench_server.systems.replica import Asked, Replica
from cbench_server.systems.roster import Roster

MAX_LOSSES = 8
_LOOK_S = 0.05
_MAX_DEATHS = 2
_MAX_BLAMES = 3
_LATE, _FULL = "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"
# Reasons by which a process shows that it can answer no call.
_GRAVE = {_LATE, "UNIMPLEMENTED", "UNKNOWN_SYSTEM", "UNAUTHENTICATED", "PERMISSION_DENIED"}
_Held = tuple[Call, Asked]


class Replicas:
    """Calls one system that several processes serve."""

    era = ""
    ahead = 0
    capacity: int | None = None

    def __init__(
        self,
        description: SystemDescription,
        members: list[Replica],
        *,
        refresh: Callable[["Replicas"], str] = lambda _: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`refresh` may change who is there; it says why no call can be made any more, if so."""
        self._description = description
        self.roster = Roster(description.name, members, clock)
        self.roster.came = self._resume
        self._refresh = refresh
        self._clock = clock
        self._width_of: Callable[[Caller], int] = lambda _: CAP
        self._is_fixed = False
        self._limbo: dict[Call, Asked] = {}
        """Lost calls, until it is known whether their replica died."""
        self._suspects: deque[_Held] = deque()
        """Calls with which a replica died: they are made one at a time."""
        self._suspect: tuple[Call, Asked, Replica] | None = None
        self._is_sent = False
        self.homes = Homes(self)

    @property
    def description(self) -> SystemDescription:
        """See Caller; with the replicas that there are now."""
        names = tuple(each.name for each in self.roster.members)
        return replace(self._description, replicas=names)

    @property
    def replicas(self) -> "Replicas":
        """See Caller."""
        return self

    # How many calls they take.

    def begin(
        self, width_of: Callable[[Caller], int], tell: Callable[[str], None], *, is_fixed: bool
    ) -> int:
        """Set how many calls each may get, and who is told of their fates; returns the sum."""
        self._width_of, self._is_fixed = width_of, is_fixed
        for each in self.roster.members:
            self.welcome(each)
        self.roster.tell_to(tell)
        return min(MAX_CONCURRENCY, sum(each.width for each in self.roster.members))

    def welcome(self, replica: Replica) -> None:
        """Give a replica its width."""
        replica.width = self._width_of(replica.caller)
        replica.begin_anew(replica.width if self._is_fixed else 1, self._clock)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.roster.members)

    @property
    def is_single(self) -> bool:
        """Whether each is called once at a time, so may have one state."""
        return all(each.width == 1 for each in self.roster.members)

    @property
    def limit(self) -> int:
        """Calls that may be at work now, with those that wait here or that nobody may add to."""
        held = len(self._limbo) + len(self._suspects) + self.homes.waiting
        if self._suspect is not None and not self._is_sent:
            held += 1
        return held + sum(
            each.climb.limit if each.takes_calls else len(each.calls)
            for each in self.roster.members
        )

    def begin_wide(self) -> None:
        """Let each begin with all calls there may be without being asked for."""
        for each in self.roster.members:
            if each.climb.limit < min(each.width, CAP):
                each.climb.begin_at(min(each.width, CAP))

    # Calls on their way out.

    def start_many(
        self, calls: Sequence[Call], timeout: float, answered: Answered, failed: Failed
    ) -> None:
        """See Caller."""
        if reason := self._refresh(self) or self.roster.refusal:
            self._fail_all(
                calls, failed, Failure("system", "SYSTEM_CHANGED", self._changed(reason))
            )
            return
        ready = self.roster.ready()
        parcels: dict[Replica, list[Call]] = {}
        for call in calls:
            asked = Asked(timeout, answered, failed)
            if call.route is None:
                call.route = Route()
            if not isinstance(call.work, Process):
                self.homes.place(call, asked, ready)
            elif call.route.deaths:
                self._suspects.append((call, asked))
            elif (chosen := self._choose(ready, call.route)) is None:
                self._fail_all([call], failed, self._nobody())
            else:
                self._note_sent(chosen, call, asked)
                parcels.setdefault(chosen, []).append(call)
        for replica, parcel in parcels.items():
            self._send(replica, parcel, timeout)
        self._next_suspect()

    def _changed(self, reason: str) -> str:
        return f"{reason}. Start a new run, or serve the version that it began with and resume it."

    def _nobody(self) -> Failure:
        message = f'no replica of system "{self._description.name}" is there.'
        return Failure("transport", "UNAVAILABLE", message, retryable=True)

    def _fail_all(self, calls: Sequence[Call], failed: Failed, failure: Failure) -> None:
        loop = asyncio.get_running_loop()
        for call in calls:
            loop.call_soon(failed, call, CallFailed(failure))

    def _choose(self, ready: list[Replica], route: Route) -> Replica | None:
        """Return the one that has least to do, rather than one that has failed the call."""
        if route.doubted is not None and len(ready) > 1:
            ready = [each for each in ready if each is not route.doubted]
        return min(ready, key=lambda each: each.load, default=None)

    def _note_sent(self, replica: Replica, call: Call, asked: Asked) -> None:
        assert call.route is not None
        call.route.at = replica
        replica.calls[call] = asked
        replica.sent += 1
        asked.sent_at = self._clock()
        asked.in_flight = len(replica.calls)
        asked.halvings = replica.climb.halvings
        call.sent_among(asked.in_flight)

    def _send(self, replica: Replica, calls: Sequence[Call], timeout: float) -> None:
        replica.caller.start_many(
            calls, timeout, partial(self._answers, replica), partial(self._failure, replica)
        )

    def send_one(self, replica: Replica, call: Call, asked: Asked) -> None:
        """Have a replica make a call."""
        self._note_sent(replica, call, asked)
        self._send(replica, [call], asked.timeout)

    # Their ends.

    def _answers(self, replica: Replica, answers: list[Answer]) -> None:
        told: dict[Answered, list[Answer]] = {}
        is_full = len(replica.calls) >= replica.climb.limit
        for answer in answers:
            call = answer.call
            asked = replica.calls.pop(call, None)
            if asked is None:
                continue
            if isinstance(call.work, Process | Query):
                replica.took(answer.latency, asked.in_flight)
            self._blame(call.route, replica)
            self.homes.ended(replica, call, None)
            told.setdefault(asked.answered, []).append(answer)
        replica.climb.count(len(answers), is_full=is_full)
        self.roster.judge(replica, len(answers))
        self._go_on(replica)
        for answered, together in told.items():
            answered(together)

    def _blame(self, route: Route, by: Replica) -> None:
        """Count it against the replica that failed a call which another answers."""
        culprit, route.doubted = route.doubted, None
        if culprit is None or culprit is by:
            return
        culprit.blames += _MAX_BLAMES if route.is_grave else 1
        if culprit.blames >= _MAX_BLAMES:
            self.roster.rest(culprit, "fails calls that others answer")

    def _failure(self, replica: Replica, call: Call, error: CallFailed) -> None:
        asked = replica.calls.pop(call, None)
        if asked is None:
            return
        failure, route = error.failure, call.route
        assert route is not None
        if failure.origin == "transport" and failure.retryable:
            self._lose(replica, call, asked, error)
            return
        self.homes.ended(replica, call, failure)
        if failure.reason == _FULL or (failure.reason == _LATE and asked.in_flight > 1):
            replica.climb.halve(asked.halvings)
        is_first = route.doubted is None
        is_doubtful = failure.origin == "system" and not failure.retryable
        route.doubted = replica if is_first and is_doubtful else None
        route.is_grave = failure.reason in _GRAVE
        route.may_move = is_first and any(each is not replica for each in self.roster.ready())
        self._go_on(replica)
        # A late call is the run's to repeat, while nothing else is called.
        is_elsewhere = is_first and is_doubtful and failure.reason != _LATE
        if not (is_elsewhere and isinstance(call.work, Process) and self._hand_on(call, asked)):
            asked.failed(call, error)

    def _hand_on(self, call: Call, asked: Asked) -> bool:
        """Ask another replica, if there is one."""
        assert call.route is not None
        chosen = self._choose(self.roster.ready(), call.route)
        if chosen is None or chosen is call.route.doubted:
            return False
        call.route.moves += 1
        self.send_one(chosen, call, asked)
        return True

    # Calls that were lost.

    def _lose(self, replica: Replica, call: Call, asked: Asked, error: CallFailed) -> None:
        death = self.roster.lost(replica, error.failure.message)
        self._go_on(replica)
        if not isinstance(call.work, Process):
            self.homes.ended(replica, call, error.failure)
        self._limbo[call] = asked
        death.add_done_callback(lambda told: self._after_loss(call, error, has_died=told.result()))

    def _after_loss(self, call: Call, error: CallFailed, *, has_died: bool) -> None:
        asked = self._limbo.pop(call, None)
        if asked is None:
            return
        route = call.route
        assert route is not None
        if not isinstance(call.work, Process):
            # What was put in before has to be put in elsewhere first.
            asked.failed(call, CallFailed(error.failure, has_died=has_died))
            return
        route.losses += 1
        route.deaths += has_died
        if route.deaths >= _MAX_DEATHS:
            message = f"{route.deaths} replicas died with this row: {error.failure.message}"
            failure = replace(error.failure, message=message, retryable=False)
            asked.failed(call, CallFailed(failure))
        elif route.losses > MAX_LOSSES or not self.roster.ready():
            asked.failed(call, error)
        elif route.deaths:
            route.moves += 1
            self._suspects.append((call, asked))
            self._next_suspect()
        elif not self._hand_on(call, asked):
            asked.failed(call, error)

    def _next_suspect(self) -> None:
        """Make the next call that may kill a replica, alone at the one that has least to do."""
        while self._suspect is None and self._suspects:
            call, asked = self._suspects.popleft()
            chosen = min(self.roster.ready(), key=lambda each: each.load, default=None)
            if chosen is None:
                self._fail_all([call], asked.failed, self._nobody())
                continue
            chosen.is_reserved = True
            self._suspect, self._is_sent = (call, asked, chosen), False
            self._send_suspect()

    def _send_suspect(self) -> None:
        if self._suspect is None or self._is_sent:
            return
        call, asked, replica = self._suspect
        if not replica.is_there:
            self._end_suspect()
            self._suspects.appendleft((call, asked))
        elif not replica.calls:
            self._is_sent = True
            self.send_one(replica, call, asked)

    def _end_suspect(self) -> None:
        assert self._suspect is not None
        self._suspect[2].is_reserved = False
        self._suspect = None

    def _go_on(self, replica: Replica) -> None:
        """Do what had to wait for a call of this replica to end."""
        if self._suspect is not None and self._suspect[2] is replica:
            if not self._is_sent:
                self._send_suspect()
            elif self._suspect[0] not in replica.calls:
                self._end_suspect()
        self._resume()

    def _resume(self) -> None:
        self._next_suspect()
        self.homes.go_on()

    # The rest of a caller.

    def widen(self, calls: int) -> None:
        """Do nothing: they queue no calls by themselves."""

    def give_up(self, call: Call) -> None:
        """See Caller."""
        self._limbo.pop(call, None)
        self._suspects = deque(held for held in self._suspects if held[0] is not call)
        self.homes.give_up(call)
        replica: Replica | None = None if call.route is None else call.route.at
        if replica is not None and replica.calls.pop(call, None) is not None:
            replica.caller.give_up(call)
            self._go_on(replica)
        if self._suspect is not None and self._suspect[0] is call:
            self._end_suspect()
            self._resume()

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until one of them can be called."""
        until = self._clock() + timeout
        while not self._refresh(self):
            left = until - self._clock()
            if await self.roster.wait(max(0.0, min(left, _LOOK_S))):
                return True
            if left <= _LOOK_S:
                return False
        return True

    async def close(self) -> None:
        """See Caller."""
        await self.homes.close()
        await self.roster.close()
