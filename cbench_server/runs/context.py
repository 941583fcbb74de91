"""The context that lanes of a run share: its plan, where examples come from and rows go."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from cbench_server.errors import RunFailed
from cbench_server.events import RowScored, StateChanged, StoredEvent
from cbench_server.results import EvalRow, Failure
from cbench_server.runs.plan import ExampleSource, Plan
from cbench_server.runs.silence import Silence
from cbench_server.runs.slots import ByteBudget
from cbench_server.runs.turns import Traffic, Turns
from cbench_server.scoring.placement import Scoring
from cbench_server.spec import RunState


class Settling(Protocol):
    """The maker of rows, which wants to know when they are stored."""

    def settle(self, rows: int, size: int) -> None:
        """Take note that so many rows, which hold so many bytes, are stored."""
        ...


class RunContext:
    """One run at work, as its lanes see it."""

    def __init__(
        self,
        plan: Plan,
        source: ExampleSource,
        scoring: Scoring,
        clock: Callable[[], float],
        held: ByteBudget | None,
    ) -> None:
        self.plan = plan
        self.source = source
        self.scoring = scoring
        self.clock = clock
        self.budget = ByteBudget(shared=held)
        self.traffic = Traffic()
        timed = plan.callers if plan.timed_rows else ()
        self.turns = Turns([caller.description.name for caller in timed])
        self.timing: dict[str, float] = {}
        """Wall-clock seconds each system took, once its lane has ended."""
        self.asked_again: dict[str, tuple[int, int]] = {}
        """Rows of each system that were asked a second time, and those that were then different."""
        self.news = asyncio.Event()
        """Set when there is something to take."""
        self._events: list[StoredEvent] = []
        self._owed: list[tuple[Settling, int, int]] = []
        self._waiting: dict[str, str] = {}
        self._failed = plan.already_failed
        self._completed = plan.already_completed

    @property
    def has_events(self) -> bool:
        """Whether there is something to take."""
        return bool(self._events)

    def take(self) -> tuple[list[StoredEvent], list[tuple[Settling, int, int]]]:
        """Return what has happened since the last time, and who is to be told once it is stored."""
        events, self._events = self._events, []
        owed, self._owed = self._owed, []
        self.news.clear()
        return events, owed

    def emit(self, rows: list[EvalRow], lane: Settling, size: int) -> None:
        """Hand on rows that hold so many bytes, and stop the run where too many have failed."""
        self._events += [RowScored(row) for row in rows]
        self._owed.append((lane, len(rows), size))
        self.news.set()
        self._completed += len(rows)
        if self.plan.money is not None:
            self.plan.money.done(rows)
        for row in rows:
            if row.failure is not None:
                self._count_failure(row.failure)

    def _count_failure(self, failure: Failure) -> None:
        self._failed += 1
        if self.plan.failure_budget.is_spent(self._failed, self._completed):
            raise RunFailed(
                Failure(
                    "daemon",
                    "FAILURE_BUDGET_SPENT",
                    f"{self._failed} of {self._completed} rows failed, more than the run allows; "
                    f"the last because: {failure.message}",
                    field="spec.max_failures",
                )
            )

    def silence_of(self, system: str) -> Silence:
        """Return what is to be noted of a system's answers."""
        who, is_heard = f'system "{system}"', system in self.plan.heard
        return Silence(who, "SYSTEM_GONE", self.plan.wait_timeout, self.clock, is_heard=is_heard)

    def remark(self, text: str) -> None:
        """Say what happened to a part of a system, which changes no state."""
        self._events.append(StateChanged(RunState.RUNNING, text))
        self.news.set()

    def set_waiting(self, system: str, reason: str | None) -> None:
        """Note that a system is away, or back, and say so when the run's state changes."""
        was_waiting = bool(self._waiting)
        if reason is None:
            self._waiting.pop(system, None)
        else:
            self._waiting[system] = reason
            self.turns.end(system)
        if bool(self._waiting) != was_waiting:
            state = RunState.WAITING if self._waiting else RunState.RUNNING
            self._events.append(StateChanged(state, reason or ""))
            self.news.set()
