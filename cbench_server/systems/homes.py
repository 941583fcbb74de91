"""Homes of conversations: each scope of a memory system lives in one replica.

What is ingested there is asked there. A scope whose replica is lost has no home any more, so
that its era changes, and the conversation is put in anew elsewhere. A replica that is called once
at a time may have one state, so it takes the next scope only when it has forgotten the last.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.systems.caller import Answer, Call, Query, Reset, call_one
from cbench_server.systems.replica import Asked, Replica, Standing

if TYPE_CHECKING:
    from cbench_server.systems.replicas import Replicas

_GONE = "gone"
_FORGET_S = 5.0
_FORGET_AGAIN_S = 0.2


class Homes:
    """Where the scopes of one memory system live."""

    def __init__(self, replicas: "Replicas") -> None:
        self._replicas = replicas
        self._homes: dict[str, Replica] = {}
        self._homeless: deque[tuple[Call, Asked]] = deque()
        """Calls that wait for a replica which has forgotten all else."""
        self._backlog: deque[tuple[Call, Asked]] = deque()
        """Calls that wait until their home has fewer of them."""
        self._stuck: dict[Replica, float] = {}
        """Those that do not forget, and since when."""
        self._strays = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """How many calls wait here."""
        return len(self._homeless) + len(self._backlog) + self._strays

    def era_of(self, scope: str) -> str:
        """Return what changes when a scope may have lost what was put into it."""
        home = self._homes.get(scope)
        if home is None or not home.is_there:
            return _GONE
        return f"{home.name} {home.lives} {home.caller.era}"

    def place(self, call: Call, asked: Asked, ready: list[Replica]) -> None:
        """Send a call to the home of its scope, or find it one."""
        work: Any = call.work
        is_last = isinstance(work, Reset) and work.is_last
        home = self._homes.get(work.scope)
        if is_last and work.is_stray:
            self._start(self._reset_all(call, asked))
        elif home is not None and home.is_there:
            self._send(home, call, asked)
        elif is_last:
            # There is nothing to forget any more.
            self._leave(work.scope)
            asyncio.get_running_loop().call_soon(asked.answered, [Answer(call, {}, 0.0)])
        elif isinstance(work, Query) or not ready:
            self._fail(call, asked, "the replica that had this conversation is gone.")
        else:
            self._settle(call, asked, ready)

    def _settle(self, call: Call, asked: Asked, ready: list[Replica]) -> None:
        """Find a home for a scope: the replica that has fewest."""
        work: Any = call.work
        fitting = [each for each in ready if each.width > 1 or not each.scopes]
        if fitting:
            home = min(fitting, key=lambda each: (len(each.scopes) / each.width, each.sent))
            self._leave(work.scope)
            self._homes[work.scope] = home
            home.scopes.add(work.scope)
            self._send(home, call, asked)
        elif all(self._has_stuck(each, asked.timeout) for each in ready):
            message = f"no replica has forgotten its last conversation for {asked.timeout:g}s."
            failure = Failure("system", "DEADLINE_EXCEEDED", message)
            asyncio.get_running_loop().call_soon(asked.failed, call, CallFailed(failure))
        else:
            self._homeless.append((call, asked))

    def _has_stuck(self, replica: Replica, seconds: float) -> bool:
        now = self._replicas.roster.clock()
        return now - self._stuck.get(replica, now) > seconds

    def _send(self, home: Replica, call: Call, asked: Asked) -> None:
        if len(home.calls) >= home.climb.limit:
            self._backlog.append((call, asked))
        else:
            self._replicas.send_one(home, call, asked)

    def _fail(self, call: Call, asked: Asked, message: str) -> None:
        failure = Failure("transport", "UNAVAILABLE", message, retryable=True)
        asyncio.get_running_loop().call_soon(asked.failed, call, CallFailed(failure))

    # Forgetting.

    async def _reset_all(self, call: Call, asked: Asked) -> None:
        """Have every replica forget a scope that one of them may have."""
        work: Any = call.work
        self._strays += 1
        try:
            members = list(self._replicas.roster.members)
            await asyncio.gather(*(self._reset_stray(each, work.scope) for each in members))
        finally:
            self._strays -= 1
        asked.answered([Answer(call, {}, 0.0)])

    async def _reset_stray(self, replica: Replica, scope: str) -> None:
        if not (replica.is_there and await _forgets(replica, scope)):
            # It is told when it is back.
            replica.strays.append(scope)

    def ended(self, replica: Replica, call: Call, failure: Failure | None) -> None:
        """Take note that a call of a replica has ended."""
        work = call.work
        if not isinstance(work, Reset) or not work.is_last:
            return
        if failure is None or not replica.is_there:
            self._leave(work.scope)
        elif replica not in self._stuck:
            self._stuck[replica] = self._replicas.roster.clock()
            self._start(self._forget_later(replica, work.scope))

    async def _forget_later(self, replica: Replica, scope: str) -> None:
        """Tell a replica again and again: it may be at work on what it was asked last."""
        try:
            while replica.is_there:
                if await _forgets(replica, scope):
                    break
                self.go_on()
                await asyncio.sleep(_FORGET_AGAIN_S)
        finally:
            self._stuck.pop(replica, None)
        self._leave(scope)
        self.go_on()

    def _leave(self, scope: str) -> None:
        home = self._homes.pop(scope, None)
        # One that is away may have kept it, and is told when it is back.
        if home is not None and home.standing is not Standing.AWAY:
            home.scopes.discard(scope)

    # Waiting.

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

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Tell nobody any more."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _forgets(replica: Replica, scope: str) -> bool:
    call = Call(f"{scope}-f", Reset(scope, is_last=True))
    with suppress(CallFailed):
        await call_one(replica.caller, call, _FORGET_S)
        return True
    return False


async def forget_left(replica: Replica) -> None:
    """Have a replica that is back forget all that is put in anew, wherever that may be."""
    left = [*replica.strays, *replica.scopes]
    replica.strays.clear()
    replica.scopes.clear()
    for scope in left:
        await _forgets(replica, scope)
