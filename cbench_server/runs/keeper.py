"""The keeper of the runs that this process works on, and of those that it may take up."""

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cbench_server.durable import failpoints
from cbench_server.errors import (
    CbenchError,
    DamagedRun,
    ShuttingDown,
    StoreAway,
    WrongState,
)
from cbench_server.events import StateChanged
from cbench_server.runs.desks import Desks
from cbench_server.runs.lacking import Lacking
from cbench_server.runs.lifecycle import Owner, Reply, reply_to
from cbench_server.runs.load import Load, together
from cbench_server.runs.ownership import Claim
from cbench_server.runs.recovery import given_up, next_life
from cbench_server.runs.run_owner import RunOwner
from cbench_server.runs.run_turns import Limits, RunTurns
from cbench_server.runs.services import Services
from cbench_server.runs.store import RunStore
from cbench_server.runs.unbroken import Unbroken
from cbench_server.spec import Run, RunState

log = logging.getLogger(__name__)


class RunKeeper:
    """Begins runs, hands them back, and takes up what nobody works on."""

    def __init__(
        self, services: Services, limits: Limits | None = None, *, is_shared: bool = False
    ) -> None:
        """`is_shared` says that daemons share the store, and with it one queue of runs."""
        self.store: RunStore = services.store
        self._services = services
        self._registry = services.registry
        self._clock = services.clock
        self.turns = RunTurns(limits or Limits())
        self._live: dict[str, RunOwner] = {}
        self._desks = Desks()
        self._unbroken = Unbroken()
        self._draining = False
        self._is_shared = is_shared
        self._lacking = Lacking(services)
        self.passed_over: list[str] = []
        """Unfinished runs that another process owned when they were last to be taken up."""
        self._kept_from: dict[str, str] = {}
        """Why runs could not be taken up, while the store is away."""

    @property
    def is_draining(self) -> bool:
        """Whether it has stopped taking work."""
        return self._draining

    @property
    def load(self) -> Load:
        """What all runs here have under way."""
        return together(owner.load for owner in self._live.values())

    @property
    def is_busy(self) -> bool:
        """Whether it has any run."""
        return bool(self._live)

    def has(self, run_id: str) -> bool:
        """Tell whether this process works on a run."""
        return run_id in self._live

    def as_it_is(self, run: Run) -> Run:
        """Return a stored run with what cannot be stored: that the store itself is waited for."""
        live = self._live.get(run.run_id)
        unowned = self._lacking.of(run.run_id) or self._kept_from.get(run.run_id, "")
        reason = live.away if live else unowned
        if not reason or run.state.is_final:
            return run
        return replace(run, state=RunState.WAITING, waiting_reason=reason)

    def _check_open(self) -> None:
        if self._draining:
            raise ShuttingDown("the daemon is shutting down and starts no runs.")

    async def _claim(self, run_id: str) -> Claim:
        claim = await self.store.owners.acquire(run_id)
        if claim is None:
            raise WrongState(f'run "{run_id}" is in progress in another process.')
        return claim

    async def _is_its_turn(self, run: Run) -> bool:
        """Tell whether a new run is begun here; else it stays in the queue that daemons share."""
        if not self._is_shared:
            return True
        before = [each for each in await self.store.unfinished() if not self._lacking.of(each)]
        return not before and self.turns.has_turn(run.created_by, but=1)

    def _begin(self, live: RunOwner, run: Run) -> None:
        self._live[run.run_id] = live
        self.turns.take(run.created_by)
        live.begin(self.turns.turn_of(run.created_by), lambda: self._forget(run))
        if self._draining:
            live.drain()

    def _forget(self, run: Run) -> None:
        del self._live[run.run_id]
        self.turns.forget(run.created_by)
        self.store.intents.tell()

    async def _take_up(self, run: Run, claim: Claim, reason: str, **further: Any) -> None:
        changes: dict[str, Any] = {
            **further,
            "state": RunState.QUEUED,
            "failure": None,
            "end_time": None,
            "waiting_reason": "",
            "lives": run.lives,
        }
        event = StateChanged(RunState.QUEUED, reason)
        await self.store.append(run.run_id, [event], update=changes, claim=claim)
        run = replace(run, **changes)
        # What this daemon lacks or has no turn for is left to the others, and to itself later.
        if not self._is_shared or (
            self.turns.has_turn(run.created_by) and not self._lacking.found(run)
        ):
            self._begin(RunOwner(self._services, run, claim), run)

    async def recover(self) -> list[str]:
        """Take up every unfinished run that no process owns; one that cannot be harms no other.

        Where daemons share a store, those are its queue: they are taken in order, as long as there
        are turns, and only by a daemon that has what they need.
        """
        resumed = []
        self.passed_over.clear()
        free = await self.store.unfinished()
        self._lacking.forget_but(free)
        for run_id in free:
            try:
                async with self._desks.at(run_id):
                    if await self._recover(run_id):
                        resumed.append(run_id)
            except StoreAway as error:
                # It is away for all of them, and they are to be tried again.
                self._kept_from = dict.fromkeys(free, str(error))
                raise
            except CbenchError as error:
                log.error("run %s is left alone: %s", run_id, error)
            except Exception:
                log.exception("run %s is left alone", run_id)
        self._kept_from.clear()
        if self._is_shared:
            self.turns.in_store = len(free) - len(resumed)
        return resumed

    async def _recover(self, run_id: str) -> bool:
        if run_id in self._live or self._draining:
            return False
        lacks = ""
        if self._is_shared:
            run = await self.store.get_run(run_id)
            lacks = self._lacking.found(run)
            has_turn = self.turns.has_turn(run.created_by)
            if not has_turn or (lacks and not self._lacking.is_to_be_stored(run)):
                return False
        claim = await self.store.owners.acquire(run_id)
        if claim is None:
            self.passed_over.append(run_id)
            return False
        failpoints.hit("recover.claimed")
        try:
            run = await self.store.get_run(run_id)
            if reply_to("recover", run.state, Owner.NOBODY) is Reply.UNCHANGED:
                return False
            if lacks:
                await self._lacking.store(run, claim)
                return False
            run = replace(run, lives=next_life(run))
            if failure := given_up(run):
                await RunOwner(self._services, run, claim).end(RunState.FAILED, failure)
                return False
            await self._take_up(run, claim, "recovered")
            return run_id in self._live
        finally:
            await self._release_unless_live(claim)

    async def _release_unless_live(self, claim: Claim) -> None:
        if claim.run_id not in self._live:
            await self.store.owners.release(claim)

    async def _let_go(self, run_id: str) -> None:
        """Wait for a run that is over and about to be let go."""
        live = self._live.get(run_id)
        if live is None or live.task is None:
            return
        with suppress(DamagedRun):  # Whether it is over cannot be told; it is still worked on.
            if (await self.store.get_run(run_id)).state.is_final:
                await asyncio.wait([live.task])

    async def drain(self, grace: float) -> None:
        """Stop taking work; finish calls in flight within `grace` seconds; hand runs back."""
        self._draining = True
        ends_at = time.monotonic() + grace
        for live in self._live.values():
            live.drain()
        await self._unbroken.all_done(grace)
        tasks = [live.task for live in self._live.values() if live.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=max(0.0, ends_at - time.monotonic()))
            for live in self._live.values():
                live.stop()
            if late:
                # What is still late waits for the store; it is as if this process had died.
                _, late = await asyncio.wait(late, timeout=5)
            for task in late:
                task.cancel()
