"""The pipeline of a run: dataset -> system -> evaluators -> rows. The file to read first.

Each system has its own lane, which reads the examples by its own cursor, keeps a
bounded number of calls in flight, has the answers scored, and emits rows in
batches: example_lane.py for systems that transform examples,
conversation_lane.py for memory systems, which go from conversation to
conversation. What both share is in lane.py.

Lanes begin one after another: the first rows of each system are called one at a
time while no other system is, which is where its latency comes from (turns.py).

Asking for the next batch says that the last one is stored. Only then do its
rows stop counting as unsettled, so a crash repeats at most a lane's window of
calls (slots.py).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from cbench_server.errors import RunFailed
from cbench_server.events import StoredEvent
from cbench_server.models.tracing import TRACE
from cbench_server.runs.context import RunContext
from cbench_server.runs.conversation_lane import ConversationLane
from cbench_server.runs.example_lane import ExampleLane
from cbench_server.runs.lane import Lane
from cbench_server.runs.load import Load
from cbench_server.runs.plan import ExampleSource, Plan
from cbench_server.runs.slots import ByteBudget
from cbench_server.scoring.placement import Scoring
from cbench_server.systems.caller import Caller
from cbench_server.systems.traced_caller import TracedCaller


class Pipeline:
    """Carries out one plan."""

    def __init__(
        self,
        plan: Plan,
        source: ExampleSource,
        scoring: Scoring,
        clock: Callable[[], float] = time.monotonic,
        held: ByteBudget | None = None,
    ) -> None:
        """`held` is the memory that all runs share."""
        self._context = RunContext(plan, source, scoring, clock, held)
        kind = ConversationLane if plan.kind == "memory" else ExampleLane
        self._lanes: list[Lane] = [kind(self._context, _traced(caller)) for caller in plan.callers]
        self._context.traffic.resumed = self._pump
        if plan.money is not None:
            plan.money.begin(plan, source, self._pump_untimed)

    @property
    def timing(self) -> dict[str, float]:
        """Wall-clock seconds each system took, once its lane has ended."""
        return self._context.timing

    @property
    def asked_again(self) -> dict[str, tuple[int, int]]:
        """How many rows of each system were asked a second time, and answered differently."""
        return self._context.asked_again

    async def events(self) -> AsyncIterator[list[StoredEvent]]:
        """Yield what happens, in batches, until every row is made.

        Raises RunFailed if the run cannot go on, after yielding all it has.
        """
        context = self._context
        lanes = asyncio.create_task(self._run_lanes())
        lanes.add_done_callback(lambda _: context.news.set())
        try:
            while context.has_events or not lanes.done():
                if not context.has_events:
                    context.news.clear()
                    await context.news.wait()
                    continue
                batch, owed = context.take()
                yield batch
                for lane, rows, size in owed:
                    lane.settle(rows, size)
                self._pump()
            await lanes
        finally:
            lanes.cancel()
            await asyncio.gather(lanes, return_exceptions=True)
            context.budget.close()

    @property
    def load(self) -> Load:
        """What is under way."""
        load = Load()
        self._context.budget.describe(load)
        for lane in self._lanes:
            lane.describe(load)
        return load

    @property
    def timed(self) -> asyncio.Event:
        """Set when every system has been timed alone."""
        return self._context.turns.over

    def _pump(self) -> None:
        for lane in self._lanes:
            lane.pump()

    def _pump_untimed(self) -> None:
        if self.timed.is_set():
            self._pump()

    def drain(self) -> None:
        """Start no more calls; `events` ends once those in flight are done."""
        for lane in self._lanes:
            lane.drain()

    async def _run_lanes(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for lane in self._lanes:
                    group.create_task(lane.run())
        except BaseExceptionGroup as errors:
            # The lanes fall together; the first RunFailed says why.
            failed, rest = errors.split(RunFailed)
            leaf: BaseException = failed or rest or errors
            while isinstance(leaf, BaseExceptionGroup):
                leaf = leaf.exceptions[0]
            raise leaf from None


def _traced(caller: Caller) -> Caller:
    run = TRACE.get()
    return caller if run is None else TracedCaller(caller, run)
