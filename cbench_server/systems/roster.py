"""The roster of a system's replicas: who is there, who is left out and until when.

A replica that is lost is looked for until it is back, and checked: it must still be what the
others are. One that fails what others answer, or lags, rests for a while, each time for longer,
and is then tried again with one call at a time. The last one that is there never rests.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from cbench_server.errors import CbenchError
from cbench_server.systems.homes import forget_left
from cbench_server.systems.replica import Replica, Standing, lag_of, stuck_for

BLINK_S = 0.25
"""A replica that is back sooner has not died: only the connection broke."""
FIRST_REST_S = 5.0
_LONGEST_REST_S = 60.0
_LOOK_S = 1.0
_LOOK_AGAIN_S = 0.2
# Answers after which a replica that was left out counts as well again.
_WELL = 32


class Roster:
    """The replicas of one system. Belongs to the event loop it is made on."""

    def __init__(
        self, system: str, members: list[Replica], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.system = system
        self.members = members
        self.clock = clock
        self.came: Callable[[], None] = lambda: None
        """Called when a replica has come, or come back."""
        self._tell: Callable[[str], None] | None = None
        self._untold: list[str] = []
        self._losses: dict[Replica, asyncio.Future[bool]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._arrival = asyncio.Event()

    def tell_to(self, tell: Callable[[str], None]) -> None:
        """Have what happens told there, and what has happened until now."""
        self._tell = tell
        untold, self._untold = self._untold, []
        for text in untold:
            tell(text)

    def tell(self, replica: Replica, what: str) -> None:
        """Say what became of a replica."""
        text = f'replica {replica.name} of system "{self.system}" {what}'
        if self._tell is None:
            self._untold.append(text)
        else:
            self._tell(text)

    # Who is there.

    def ready(self) -> list[Replica]:
        """Return those that get calls now; those that rest only if there are no others."""
        ready = []
        for each in self.members:
            if each.standing is Standing.IN and not each.is_connected():
                self.lost(each, "the connection is gone.")
            if each.takes_calls:
                ready.append(each)
        if len(ready) > 1:
            ready = self._without_stuck(ready)
        return ready or self._called_in()

    def _without_stuck(self, ready: list[Replica]) -> list[Replica]:
        now = self.clock()
        for each in list(ready):
            others = [other for other in ready if other is not each]
            waited = stuck_for(each, others, now) if others else None
            if waited is not None:
                ready = others
                self.rest(each, f"has not answered for {waited:.1f}s")
        return ready

    def _called_in(self) -> list[Replica]:
        """Let those come back that rest, when nobody else is there."""
        resting = [each for each in self.members if each.standing is Standing.RESTING]
        if any(each.standing is Standing.IN for each in self.members):
            return []
        for each in resting:
            self._take_in(each, "is called in again, since no other is there.")
        return [each for each in resting if each.takes_calls]

    @property
    def is_anyone_there(self) -> bool:
        """Whether some replica can be called."""
        return any(each.is_there for each in self.members)

    @property
    def refusal(self) -> str:
        """Why nobody can be called any more, if all are other than they were."""
        is_over = self.members and all(each.standing is Standing.REFUSED for each in self.members)
        return "every replica has changed" if is_over else ""

    async def wait(self, timeout: float) -> bool:
        """Wait until one is there, or until all are other than they were."""
        try:
            async with asyncio.timeout(timeout):
                while not (self.is_anyone_there or self.refusal):
                    self._arrival.clear()
                    await self._arrival.wait()
        except TimeoutError:
            return False
        return True

    # Coming and going.

    def add(self, replica: Replica) -> None:
        """Take in another one."""
        self.members.append(replica)
        self.tell(replica, "has joined.")
        self._announce()

    def remove(self, replica: Replica, why: str) -> None:
        """Forget one that does not come back."""
        self.members.remove(replica)
        if replica.standing is not Standing.AWAY:
            replica.lives += 1
            replica.standing = Standing.AWAY
            self.tell(replica, f"has left: {why}{self._others_take()}")

    def lost(self, replica: Replica, why: str) -> asyncio.Future[bool]:
        """Take note that a replica is gone; tells whether it died, or only blinked."""
        if replica in self._losses and replica.standing in (Standing.AWAY, Standing.REFUSED):
            return self._losses[replica]
        death: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._losses[replica] = death
        replica.standing = Standing.AWAY
        replica.lives += 1
        replica.deaths += 1
        if self._is_closed:
            # It is lost because we let go of it.
            death.set_result(True)
        else:
            self._start(self._look_for(replica, why, death))
        return death

    async def _look_for(self, replica: Replica, why: str, death: asyncio.Future[bool]) -> None:
        """Wait until a replica is back, and is what it was."""
        is_back = False
        try:
            is_back = await replica.caller.wait_connected(BLINK_S)
        finally:
            death.set_result(not is_back)
        if replica not in self.members:
            return
        if is_back and replica.deaths == 1 and not await self._unfit(replica):
            await forget_left(replica)
            self._take_in(replica, "")
            return
        await self._await_return(replica, why)

    async def _await_return(self, replica: Replica, why: str) -> None:
        replica.left_out += 1
        self.tell(replica, f"is away: {why.rstrip('.')}.{self._others_take()}")
        if replica.deaths > 1:
            # It dies whenever it is called: others need not lose more calls with it.
            await asyncio.sleep(_rest_seconds(replica.deaths - 1))
        while replica in self.members:
            if await replica.caller.wait_connected(_LOOK_S):
                unfit = await self._unfit(replica)
                if unfit == "":
                    await forget_left(replica)
                    self._take_in(replica, "is back.")
                    return
                if unfit and replica.standing is not Standing.REFUSED:
                    replica.standing = Standing.REFUSED
                    self.tell(replica, f"is left out: {unfit}")
                    self._announce()
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _unfit(self, replica: Replica) -> str | None:
        """Say why a replica is not what it was, None if that cannot be told; empty if it is."""
        if replica.check is None:
            return ""
        try:
            return await replica.check()
        except CbenchError:
            return None

    def _take_in(self, replica: Replica, told: str) -> None:
        replica.standing = Standing.IN
        if told:
            replica.begin_anew(1, self.clock)
            self.tell(replica, told)
        self._announce()

    def _announce(self) -> None:
        self._arrival.set()
        self.came()

    # Being left out.

    def rest(self, replica: Replica, why: str) -> None:
        """Leave out a replica for a while, if there is another."""
        others = [each for each in self.members if each is not replica and each.takes_calls]
        if replica.standing is not Standing.IN or not others:
            return
        replica.standing = Standing.RESTING
        replica.left_out += 1
        replica.rests += 1
        replica.well = replica.blames = 0
        seconds = _rest_seconds(replica.rests)
        self.tell(replica, f"is left out for {seconds:g}s: it {why}.{self._others_take()}")
        self._start(self._end_rest(replica, seconds))

    async def _end_rest(self, replica: Replica, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if replica.standing is Standing.RESTING and replica in self.members:
            self._take_in(replica, "is tried again.")

    def judge(self, replica: Replica, answers: int) -> None:
        """Look at a replica that has answered."""
        replica.blames = replica.deaths = 0
        if replica.rests:
            replica.well += answers
            if replica.well >= _WELL:
                replica.rests = 0
        if len(self.members) == 1 or not replica.takes_calls:
            return
        others = [each for each in self.members if each is not replica and each.takes_calls]
        if (lag := lag_of(replica, others)) is not None:
            took, typical = lag
            self.rest(replica, f"takes {took:.2g}s for a call, and others take {typical:.2g}s")

    def _others_take(self) -> str:
        others = sum(each.takes_calls for each in self.members)
        return f" Its calls go to {others} other{'s' if others != 1 else ''}." if others else ""

    # Its end.

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Look for nobody any more, and let go of all."""
        self._is_closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for each in self.members:
            await each.caller.close()


def _rest_seconds(times: int) -> float:
    return min(_LONGEST_REST_S, FIRST_REST_S * 2.0 ** min(times - 1, 8))
