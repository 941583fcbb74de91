"""The orchestrator: starts, rescores, cancels, resumes, deletes and recovers runs."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cbench_server.errors import (
    AlreadyExists,
    CbenchError,
    DamagedRun,
    ShuttingDown,
    StoreAway,
    WrongState,
    blaming,
)
from cbench_server.events import RunAccepted, StateChanged
from cbench_server.runs import failpoints
from cbench_server.runs.anchors import check_anchor_names
from cbench_server.runs.callers import audit, current_caller
from cbench_server.runs.conclusions import with_arms
from cbench_server.runs.config import notes_before
from cbench_server.runs.connections import Connections, connect
from cbench_server.runs.desks import Desks
from cbench_server.runs.digests import spec_digest
from cbench_server.runs.grouping import check_fields
from cbench_server.runs.lifecycle import Owner, Reply, reply_to
from cbench_server.runs.live_run import Services
from cbench_server.runs.load import Load, together
from cbench_server.runs.new_runs import new_run
from cbench_server.runs.opened_config import opened_config
from cbench_server.runs.ownership import Claim
from cbench_server.runs.prices import check_budget, with_known_prices
from cbench_server.runs.recovery import given_up, next_life
from cbench_server.runs.rescore import describe_rescoring, kept_notes, rescored_spec
from cbench_server.runs.run_money import raised_budget
from cbench_server.runs.run_owner import RunOwner
from cbench_server.runs.run_turns import Limits, RunTurns
from cbench_server.runs.spec_checks import check_whole
from cbench_server.runs.spec_limits import check_limits
from cbench_server.runs.store import RunStore
from cbench_server.runs.suites import with_registered_names
from cbench_server.runs.unbroken import Unbroken
from cbench_server.runs.wiring import check_score_field
from cbench_server.spec import EvaluatorRef, Lives, Run, RunSpec, RunState

log = logging.getLogger(__name__)

_CANCELLED_WITHIN_S = 10.0


class Orchestrator:
    """Answers requests about runs, one at a time for each run, by the table in lifecycle.py."""

    def __init__(self, services: Services, limits: Limits | None = None) -> None:
        self.store: RunStore = services.store
        self._services = services
        self._registry = services.registry
        self._clock = services.clock
        self.turns = RunTurns(limits or Limits())
        self._live: dict[str, RunOwner] = {}
        self._desks = Desks()
        self._unbroken = Unbroken()
        self._draining = False
        self.passed_over: list[str] = []
        """Unfinished runs that another process owned when they were last to be taken up."""

    @property
    def is_draining(self) -> bool:
        """Whether it has stopped taking work."""
        return self._draining

    async def start(self, spec: RunSpec, request_id: str = "") -> Run:
        """Accept a run and begin it, having made sure that everything it names is there."""
        self._check_open()
        spec = with_arms(with_registered_names(spec, self._registry))
        spec = with_known_prices(spec, self._services.prices)
        if known := await self._known(request_id, spec):
            return known
        self.turns.check_room(current_caller().name)
        check_whole(spec, self._registry)
        opened = await self._connect(spec, is_rescored=False)
        try:
            check_score_field(spec.score_field, opened.plans.values())
            check_anchor_names(spec, opened.names)
            check_budget(spec, opened.callers, opened.reader, opened.plans, opened.prompts)
            if spec.group_by:
                await asyncio.to_thread(check_fields, spec.group_by, opened.datasets)
            config = await asyncio.to_thread(opened_config, spec, opened, self._registry)
            run = new_run(spec, request_id, opened.names, self._clock())
            notes = await asyncio.to_thread(notes_before, opened.datasets, opened.plans)
            notes += opened.notes
        except BaseException:
            await opened.close()
            raise
        return await self._unbroken.do(
            self._accept(replace(run, config=config, notes=notes), opened)
        )

    async def rescore(
        self,
        run_id: str,
        evaluators: Sequence[EvaluatorRef] = (),
        *,
        references_upload: str = "",
        labels: Mapping[str, str] | None = None,
        request_id: str = "",
        allow_unqualified_judges: bool = False,
        errata_upload: str = "",
        labels_upload: str = "",
    ) -> Run:
        """Rescore a finished run as a new run.

        Without evaluators, those of the run are used. References replace the
        fields of the examples with the same id.
        """
        self._check_open()
        parent = await self.store.get_run(run_id)
        if reply_to("rescore", parent.state, Owner.NOBODY) is Reply.REFUSED:
            raise WrongState(f'run "{run_id}" is {parent.state}; wait until it is over.')
        if not parent.completed_rows:
            raise WrongState(f'run "{run_id}" has no rows, so there is nothing to score.')
        spec = rescored_spec(
            parent.spec,
            evaluators,
            labels=dict(labels or {}),
            allow_unqualified_judges=allow_unqualified_judges,
            errata_upload=errata_upload or parent.spec.errata_upload,
            labels_upload=labels_upload or parent.spec.labels_upload,
        )
        check_limits(spec)
        if known := await self._known(request_id, spec):
            return known
        if references_upload:
            with blaming("references_upload"):
                self._services.uploads.count(references_upload)
        opened = await self._connect(spec, is_rescored=True)
        try:
            run = replace(
                new_run(spec, request_id, parent.systems, self._clock()),
                parent_run_id=run_id,
                total_rows=parent.completed_rows,
                config=describe_rescoring(
                    parent, spec, opened.plans, references_upload, self._clock()
                ),
                notes=kept_notes(parent, references_upload),
            )
        except BaseException:
            await opened.close()
            raise
        return await self._unbroken.do(self._accept(run, opened))

    async def _connect(self, spec: RunSpec, *, is_rescored: bool) -> Connections:
        services = self._services
        return await connect(
            spec, services.finder, services.registry, services.uploads, is_rescored=is_rescored
        )

    async def _known(self, request_id: str, spec: RunSpec) -> Run | None:
        """Return the run that a repeated request has made already."""
        known = await self.store.find_request(request_id) if request_id else None
        if known and spec_digest(known.spec) != spec_digest(spec):
            error = AlreadyExists(
                f'request id "{request_id}" started run "{known.run_id}" with another spec.'
            )
            error.field = "request_id"
            raise error
        return known

    async def _accept(self, run: Run, opened: Connections) -> Run:
        """Store a run and begin it, unless the same request made one already."""
        claim = stored = None
        has_place = False
        try:
            self.turns.check_room(run.created_by)
            self.turns.take(run.created_by)
            has_place = True
            claim = await self._claim(run.run_id)
            failpoints.hit("accept.claimed")
            begun = time.perf_counter()
            stored = await self.store.create_run(run)
            seconds = time.perf_counter() - begun
            failpoints.hit("accept.stored")
            if stored.run_id == run.run_id:
                self._begin(RunOwner(self._services, stored, claim, opened), stored)
                parent = run.parent_run_id
                what = f"rescored run {parent} as" if parent else "started run"
                if self._services.committed is not None:
                    self._services.committed(run.run_id, [RunAccepted(stored)], seconds)
                audit("start", f"{what} {run.run_id}", run_id=run.run_id)
            return stored
        finally:
            if has_place:
                self.turns.forget(run.created_by)
            if stored is None or stored.run_id != run.run_id:
                if claim is not None:
                    await self.store.owners.release(claim)
                await opened.close()

    @property
    def load(self) -> Load:
        """What all runs here have under way."""
        return together(owner.load for owner in self._live.values())

    def as_it_is(self, run: Run) -> Run:
        """Return a stored run with what cannot be stored: that the store itself is waited for."""
        live = self._live.get(run.run_id)
        if live is None or not live.away or run.state.is_final:
            return run
        return replace(run, state=RunState.WAITING, waiting_reason=live.away)

    async def cancel(self, run_id: str) -> Run:
        """Stop a run and keep its rows; one owned by another process is asked to stop."""
        return await self._unbroken.do(self._cancel(run_id))

    async def _cancel(self, run_id: str) -> Run:
        async with self._desks.at(run_id):
            if live := self._live.get(run_id):
                live.cancel()
                if live.task is not None:
                    await asyncio.wait([live.task], timeout=_CANCELLED_WITHIN_S)
                return self.as_it_is(await self.store.get_run(run_id))
            run = await self.store.get_run(run_id)
            if reply_to("cancel", run.state, Owner.NOBODY) is Reply.UNCHANGED:
                return run
            claim = await self.store.owners.acquire(run_id)
            if claim is None:
                await self.store.request_cancel(run_id)
                return await self.store.get_run(run_id)
            try:
                failpoints.hit("cancel.claimed")
                # It may have ended before it was claimed.
                run = await self.store.get_run(run_id)
                if reply_to("cancel", run.state, Owner.NOBODY) is Reply.DONE:
                    await RunOwner(self._services, run, claim).end(RunState.CANCELLED)
            finally:
                await self.store.owners.release(claim)
            return await self.store.get_run(run_id)

    async def resume(self, run_id: str, budget_usd: float | None = None) -> Run:
        """Take a run up where it stopped; one that is in progress is left alone.

        `budget_usd` takes the place of the budget it had.
        """
        self._check_open()
        return await self._unbroken.do(self._resume(run_id, budget_usd))

    async def _resume(self, run_id: str, budget_usd: float | None) -> Run:
        async with self._desks.at(run_id):
            await self._let_go(run_id)
            run = await self.store.get_run(run_id)
            if run_id in self._live:
                if budget_usd is not None:
                    raise WrongState(
                        f'run "{run_id}" is in progress; its budget stands until it ends.'
                    )
                return self.as_it_is(run)
            claim = await self.store.owners.acquire(run_id)
            owner = Owner.ELSEWHERE if claim is None else Owner.NOBODY
            reply = reply_to("resume", run.state, owner)
            if reply is Reply.UNCHANGED:
                return run
            if claim is None:
                raise WrongState(f'run "{run_id}" is about to end in another process. Try again.')
            failpoints.hit("resume.claimed")
            try:
                # It may have changed before it was claimed.
                run = await self.store.get_run(run_id)
                if reply_to("resume", run.state, Owner.NOBODY) is Reply.REFUSED:
                    raise WrongState(
                        f'run "{run_id}" has succeeded; there is nothing left to resume.'
                    )
                changes = raised_budget(run, budget_usd)
                await self._take_up(replace(run, lives=Lives()), claim, "resumed", **changes)
            except BaseException:
                await self._release_unless_live(claim)
                raise
            return await self.store.get_run(run_id)

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
        self._begin(RunOwner(self._services, run, claim), run)

    async def explain_wait(self, run_id: str, reason: str) -> Run:
        """Keep why a system of a run in progress is away; another run is left as it is."""
        if (live := self._live.get(run_id)) is not None:
            await live.explain_wait(reason)
        return await self.store.get_run(run_id)

    async def delete(self, run_id: str) -> None:
        """Delete a run that no process is working on."""
        await self._unbroken.do(self._delete(run_id))

    async def _delete(self, run_id: str) -> None:
        async with self._desks.at(run_id):
            await self._let_go(run_id)
            if run_id in self._live:
                raise WrongState(
                    f'run "{run_id}" is in progress. Cancel it first: cbench cancel {run_id}'
                )
            await self.store.delete_run(run_id)

    async def recover(self) -> list[str]:
        """Take up every unfinished run that no process owns; one that cannot be harms no other."""
        resumed = []
        self.passed_over.clear()
        for run_id in await self.store.unfinished():
            try:
                async with self._desks.at(run_id):
                    if await self._recover(run_id):
                        resumed.append(run_id)
            except StoreAway:
                raise  # It is away for all of them, and they are to be tried again.
            except CbenchError as error:
                log.error("run %s is left alone: %s", run_id, error)
        return resumed

    async def _recover(self, run_id: str) -> bool:
        if run_id in self._live:
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
            run = replace(run, lives=next_life(run))
            if failure := given_up(run):
                await RunOwner(self._services, run, claim).end(RunState.FAILED, failure)
                return False
            await self._take_up(run, claim, "recovered")
            return True
        finally:
            await self._release_unless_live(claim)

    async def _release_unless_live(self, claim: Claim) -> None:
        if claim.run_id not in self._live:
            await self.store.owners.release(claim)

    async def _let_go(self, run_id: str) -> None:
        """Wait for a run that is over and about to be let go."""
        task = live.task if (live := self._live.get(run_id)) else None
        with suppress(DamagedRun):  # Whether it is over cannot be told; it is still worked on.
            if task is not None and (await self.store.get_run(run_id)).state.is_final:
                await asyncio.wait([task])

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

    def _check_open(self) -> None:
        if self._draining:
            raise ShuttingDown("the daemon is shutting down and starts no runs.")

    async def _claim(self, run_id: str) -> Claim:
        claim = await self.store.owners.acquire(run_id)
        if claim is None:
            raise WrongState(f'run "{run_id}" is in progress in another process.')
        return claim

    def _begin(self, live: RunOwner, run: Run) -> None:
        self._live[run.run_id] = live
        self.turns.take(run.created_by)
        live.begin(self.turns.turn_of(run.created_by), lambda: self._forget(run))
        if self._draining:
            live.drain()

    def _forget(self, run: Run) -> None:
        del self._live[run.run_id]
        self.turns.forget(run.created_by)
