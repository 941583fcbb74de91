"""Homes of conversations: each scope of a memory system lives in one replica.

What is ingested there is asked there. A scope whose replica is lost has no home any more, so
that its era changes, and the conversation is put in anew elsewhere. A replica that is called once
at a time may have one state, so it takes the next scope only when it has forgotten the last.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.systems.caller import Answer, Call, Query, Reset, call_one
from cbench_server.systems.replica import Asked, Replica, Standing

if TYPE_CHECKING:
    from cbench_server.systems.replicas import Replicas

_GONE = "gone"


class Homes:
    """Where the scopes of one memory system live."""

    def __init__(self, replicas: "Replicas") -> None:
        self._replicas = replicas
        self._homes: dict[str, Replica] = {}
        self._open: set[str] = set()
        """Scopes that were begun; the next reset ends them."""
        self._homeless: deque[tuple[Call, Asked]] = deque()
        """Calls that wait for a replica which has forgotten all else."""
        self._backlog: deque[tuple[Call, Asked]] = deque()
        """Calls that wait until their home has fewer of them."""
        self._strays: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """How many calls wait here."""
        return len(self._homeless) + len(self._backlog) + len(self._strays)

    def era_of(self, scope: str) -> str:
        """Return what changes when a scope may have lost what was put into it."""
        home = self._homes.get(scope)
        if home is None or not home.is_there:
            return _GONE
        return f"{home.name} {home.lives} {home.caller.era}"

    def place(self, call: Call, asked: Asked, ready: list[Replica]) -> None:
        """Send a call to the home of its scope, or find it one."""
        work: Any = call.work
        if isinstance(work, Reset) and work.is_stray:
            task = asyncio.get_running_loop().create_task(self._reset_all(call, asked))
            self._strays.add(task)
            task.add_done_callback(self._strays.discard)
            return
        home = self._homes.get(work.scope)
        if home is not None and home.is_there:
            self._send(home, call, asked)
        elif isinstance(work, Query) or (isinstance(work, Reset) and work.scope in self._open):
            self._without_home(call, asked)
        elif not ready:
            self._fail(call, asked)
        else:
            self._settle(call, asked, ready)

    def _without_home(self, call: Call, asked: Asked) -> None:
        """End a call about what is lost: there is nothing to ask, and nothing to forget."""
        if isinstance(call.work, Query):
            self._fail(call, asked)
            return
        assert isinstance(call.work, Reset)
        self._leave(call.work.scope)
        asyncio.get_running_loop().call_soon(asked.answered, [Answer(call, {}, 0.0)])

    def _settle(self, call: Call, asked: Asked, ready: list[Replica]) -> None:
        """Find a home for a scope: the replica that has fewest."""
        work: Any = call.work
        fitting = [each for each in ready if each.width > 1 or not each.scopes]
        if not fitting:
            self._homeless.append((call, asked))
            return
        home = min(fitting, key=lambda each: (len(each.scopes) / each.width, each.sent))
        self._leave(work.scope)
        self._homes[work.scope] = home
        home.scopes.add(work.scope)
        self._send(home, call, asked)

    def _send(self, home: Replica, call: Call, asked: Asked) -> None:
        if len(home.calls) >= home.climb.limit:
            self._backlog.append((call, asked))
        else:
            self._replicas.send_one(home, call, asked)

    def _fail(self, call: Call, asked: Asked) -> None:
        message = "the replica that had this conversation is gone."
        failure = Failure("transport", "UNAVAILABLE", message, retryable=True)
        asyncio.get_running_loop().call_soon(asked.failed, call, CallFailed(failure))

    async def _reset_all(self, call: Call, asked: Asked) -> None:
        """Have every replica forget a scope that one of them may have."""
        work: Any = call.work
        for each in self._replicas.roster.members:
            if each.is_there:
                stray = Call(f"{call.call_id}-{each.name}", Reset(work.scope))
                with suppress(CallFailed):
                    await call_one(each.caller, stray, asked.timeout)
        asked.answered([Answer(call, {}, 0.0)])

    def ended(self, replica: Replica, call: Call, failure: Failure | None) -> None:
        """Take note that a call of a replica has ended."""
        work = call.work
        if not isinstance(work, Reset) or self._homes.get(work.scope) is not replica:
            return
        if work.scope in self._open or (failure is not None and not failure.retryable):
            self._leave(work.scope)
        elif failure is None:
            self._open.add(work.scope)

    def _leave(self, scope: str) -> None:
        self._open.discard(scope)
        home = self._homes.pop(scope, None)
        # One that is away may have kept it, and is told when it is back.
        if home is not None and home.standing is not Standing.AWAY:
            home.scopes.discard(scope)

    def go_on(self) -> None:
        """Make the calls that had to wait, as far as they may be made now."""
        for waiting in (self._backlog, self._homeless):
            if waiting:
                held = list(waiting)
                waiting.clear()
                ready = self._replicas.roster.ready()
                for call, asked in held:
                    self.place(call, asked, ready)

    def give_up(self, call: Call) -> None:
        """Forget a call that waits."""
        for waiting in (self._backlog, self._homeless):
            for held in list(waiting):
                if held[0] is call:
                    waiting.remove(held)


async def forget_left(replica: Replica, timeout: float = 5.0) -> None:
    """Have a replica that is back forget the conversations that have gone elsewhere."""
    for scope in list(replica.scopes):
        with suppress(CallFailed):
            await call_one(replica.caller, Call(f"{scope}-f", Reset(scope)), timeout)
    replica.scopes.clear()
