"""Dataset -> System -> Evaluator -> row: the file to read first.

A `Runner` takes a `Plan` and yields batches of events. Each system has a lane
of its own (lane.py), which reads the examples by its own cursor, keeps a
bounded number of calls in flight, scores the answers and emits rows. A memory
system's lane (memory_lane.py) goes from conversation to conversation. Asking
for the next batch says that the last one is safe: only then do its rows stop
counting as unsettled, so that a crash repeats at most a lane's window of calls.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from cbench_server.errors import RunFailed
from cbench_server.events import RowScored, StateChanged, StoredEvent
from cbench_server.lane import Item, Lane
from cbench_server.memory_lane import MemoryLane
from cbench_server.permits import ByteBudget
from cbench_server.plan import ExampleSource, Plan
from cbench_server.results import EvalRow, Failure
from cbench_server.scoring import Scoring
from cbench_server.spec import RunState
from cbench_server.systems.memory_caller import MemoryCaller


class Runner:
    """Carries out one plan."""

    def __init__(
        self,
        plan: Plan,
        source: ExampleSource,
        scoring: Scoring,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan = plan
        self.source = source
        self.scoring = scoring
        self.clock = clock
        self.budget = ByteBudget()
        self.timing: dict[str, float] = {}
        """Wall-clock seconds each system took, once its lane has ended."""
        self._lanes = [
            MemoryLane(self, caller) if isinstance(caller, MemoryCaller) else Lane(self, caller)
            for caller in plan.callers
        ]
        self._ready: list[tuple[StoredEvent, Item | None]] = []
        self._wake = asyncio.Event()
        self._waiting: dict[str, str] = {}
        self._failed = plan.already_failed
        self._completed = plan.already_completed

    async def events(self) -> AsyncIterator[list[StoredEvent]]:
        """Yield what happens, in batches, until every row is made.

        Raises RunFailed if the run cannot go on, after yielding all it has.
        """
        lanes = asyncio.create_task(self._run_lanes())
        lanes.add_done_callback(lambda _: self._wake.set())
        try:
            while self._ready or not lanes.done():
                if not self._ready:
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                batch, self._ready = self._ready, []
                yield [event for event, _ in batch]
                for _, item in batch:
                    if item is not None:
                        item.lane.settle(item)
                for lane in self._lanes:
                    lane.pump()
            await lanes
        finally:
            lanes.cancel()
            await asyncio.gather(lanes, return_exceptions=True)

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

    def emit_row(self, row: EvalRow, item: Item) -> None:
        """Hand on a finished row, and stop the run where too many have failed."""
        self._completed += 1
        self._ready.append((RowScored(row), item))
        self._wake.set()
        if row.failure is None:
            return
        self._failed += 1
        if self.plan.failure_budget.is_spent(self._failed, self._completed):
            raise RunFailed(
                Failure(
                    "daemon",
                    "FAILURE_BUDGET_SPENT",
                    f"{self._failed} of {self._completed} rows failed, more than the run allows; "
                    f"the last because: {row.failure.message}",
                )
            )

    def set_waiting(self, system: str, reason: str | None) -> None:
        """Note that a system is away, or back, and say so when the run's state changes."""
        was_waiting = bool(self._waiting)
        if reason is None:
            self._waiting.pop(system, None)
        else:
            self._waiting[system] = reason
        if bool(self._waiting) != was_waiting:
            state = RunState.WAITING if self._waiting else RunState.RUNNING
            self._ready.append((StateChanged(state, reason or ""), None))
            self._wake.set()
