"""Seats: one actor for each CPU that the cluster offers, made again where one is lost."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cbench_server import __version__
from cbench_server.cluster.messages import SANDBOX, Hello, Settings
from cbench_server.cluster.scorer import Scorer

_log = logging.getLogger(__name__)

_LOOK_EVERY_S = 5.0
# Another job may have the CPU; its seat is asked for again later.
_START_S = 120.0
# Two batches: one is scored while the next is on its way.
_AT_ONCE = 2


class Seat:
    """One actor that has said hello."""

    def __init__(self, actor: Any, node: str, *, is_sandboxed: bool) -> None:
        self.actor = actor
        self.node = node
        self.is_sandboxed = is_sandboxed
        self.under_way = 0

    @property
    def is_free(self) -> bool:
        """Whether it can take a batch."""
        return self.under_way < _AT_ONCE

    def leave(self) -> None:
        """End the actor, if it still lives."""
        try:
            ray.kill(self.actor)
        except Exception as error:
            # The cluster may be gone as well.
            _log.debug("an actor cannot be ended: %s", error)


class Seats:
    """Keeps a seat on every CPU of the cluster, up to a limit.

    `changed` is called with what happened, in words, whenever a seat comes or goes.
    """

    def __init__(self, settings: Settings, changed: Callable[[str], None]) -> None:
        self._settings = settings
        self._changed = changed
        self._starting: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._look = asyncio.Event()
        self._complaints: set[str] = set()
        self.all: list[Seat] = []

    async def keep(self) -> None:
        """Take the seats that the cluster offers, for ever."""
        while True:
            self._look.clear()
            try:
                nodes = await asyncio.to_thread(ray.nodes)
            except Exception as error:
                self._complain(f"the nodes of the cluster cannot be listed: {error}")
            else:
                self._take(nodes)
            try:
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._look.wait()
            except TimeoutError:
                pass

    def lost(self, seat: Seat, why: str) -> None:
        """Give up a seat whose actor does not answer."""
        if seat in self.all:
            self.all.remove(seat)
            seat.leave()
            self._changed(f"a scorer on node {seat.node[:8]} was lost: {why}")
            self._look.set()

    def _take(self, nodes: list[dict[str, Any]]) -> None:
        alive = {node["NodeID"]: node for node in nodes if node["Alive"]}
        for seat in [seat for seat in self.all if seat.node not in alive]:
            self.lost(seat, "its node is gone")
        for name, node in alive.items():
            offered = node["Resources"]
            taken = self._starting.get(name, 0) + sum(seat.node == name for seat in self.all)
            for number in range(taken, int(offered.get("CPU", 0))):
                if self._is_full:
                    return
                self._start(name, with_sandbox=offered.get(SANDBOX, 0) > number)

    @property
    def _is_full(self) -> bool:
        most = self._settings.most_seats
        return 0 < most <= len(self.all) + sum(self._starting.values())

    def _start(self, node: str, *, with_sandbox: bool) -> None:
        self._starting[node] = self._starting.get(node, 0) + 1
        task = asyncio.create_task(self._begin(node, with_sandbox=with_sandbox))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self, node: str, *, with_sandbox: bool) -> None:
        settings = self._settings
        actor = (
            ray.remote(Scorer)
            .options(
                num_cpus=1,
                resources={SANDBOX: 1} if with_sandbox else {},
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
                max_restarts=0,
            )
            .remote(settings.call_timeout)
        )
        seat = Seat(actor, node, is_sandboxed=with_sandbox)
        try:
            async with asyncio.timeout(_START_S):
                said = await actor.hello.remote(settings.policy, with_sandbox=with_sandbox)
            self._welcome(seat, msgspec.msgpack.decode(said, type=Hello))
        except TimeoutError:
            seat.leave()
        except Exception as error:
            seat.leave()
            self._complain(f"node {node[:8]} gives no scorer: {_first_line(error)}")
            # Not at once: what is wrong there may last.
            await asyncio.sleep(_LOOK_EVERY_S)
        finally:
            self._starting[node] -= 1

    def _welcome(self, seat: Seat, hello: Hello) -> None:
        if hello.version != __version__:
            seat.leave()
            self._complain(
                f"node {seat.node[:8]} has cbench-server {hello.version}, this daemon "
                f"{__version__}; install the same there"
            )
            return
        if seat.is_sandboxed and hello.sandbox_problem:
            seat.is_sandboxed = False
            self._complain(
                f"node {seat.node[:8]} offers {SANDBOX}, but runs no programs: "
                f"{hello.sandbox_problem}"
            )
        self.all.append(seat)
        self._changed("")

    def _complain(self, what: str) -> None:
        if what not in self._complaints:
            self._complaints.add(what)
            self._changed(what)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"
