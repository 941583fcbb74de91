"""The orchestrator: starts, rescores, cancels, resumes, deletes and recovers runs."""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from cbench_server.durable import failpoints
from cbench_server.errors import (
    AlreadyExists,
    UnknownRun,
    WrongState,
    blaming,
)
from cbench_server.events import RunAccepted
from cbench_server.runs.anchors import check_anchor_names
from cbench_server.runs.callers import audit, current_caller
from cbench_server.runs.conclusions import with_arms
from cbench_server.runs.config import notes_before
from cbench_server.runs.connections import Connections, connect
from cbench_server.runs.digests import spec_digest
from cbench_server.runs.grouping import check_fields
from cbench_server.runs.intents import Answer, Intent, PassOn, ask, refer
from cbench_server.runs.keeper import RunKeeper
from cbench_server.runs.lifecycle import Owner, Reply, reply_to
from cbench_server.runs.new_runs import new_run
from cbench_server.runs.opened_config import opened_config
from cbench_server.runs.prices import check_budget, with_known_prices
from cbench_server.runs.rescore import describe_rescoring, kept_notes, rescored_spec
from cbench_server.runs.run_money import raised_budget
from cbench_server.runs.run_owner import RunOwner
from cbench_server.runs.spec_checks import check_whole
from cbench_server.runs.spec_limits import check_limits
from cbench_server.runs.suites import with_registered_names
from cbench_server.runs.wiring import check_score_field
from cbench_server.spec import EvaluatorRef, Lives, Run, RunSpec, RunState

T = TypeVar("T")

_CANCELLED_WITHIN_S = 10.0


class Orchestrator(RunKeeper):
    """Answers requests about runs, one at a time for each run, by the table in lifecycle.py."""

    async def start(self, spec: RunSpec, request_id: str = "") -> Run:
        """Accept a run and begin it, having made sure that everything it names is there."""
        self._check_open()
        spec = with_arms(with_registered_names(spec, self._registry))
        spec = with_known_prices(spec, self._services.prices)
        if known := await self._known(request_id, spec):
            return known
        self.turns.check_room(current_caller().name)
        if self._is_shared:
            self.turns.check_queue(len(await self.store.unfinished()))
        check_whole(spec, self._registry)
        opened = await self._connect(spec)
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
        opened = await self._connect(spec, parent.config)
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

    async def _connect(
        self, spec: RunSpec, recorded: Mapping[str, Any] | None = None
    ) -> Connections:
        services = self._services
        return await connect(
            spec, services.finder, services.registry, services.uploads, recorded=recorded
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
        has_place = is_begun = False
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
                if is_begun := await self._is_its_turn(run):
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
            if not is_begun:
                if claim is not None:
                    await self.store.owners.release(claim)
                await opened.close()
                self.store.intents.tell()

    async def _in_turn(self, run_id: str, work: Coroutine[Any, Any, T]) -> T:
        """Do what is asked about a run when nothing else that was asked about it is done here."""

        async def at_desk() -> T:
            async with self._desks.at(run_id):
                return await work

        return await self._unbroken.do(at_desk())

    async def cancel(self, run_id: str) -> Run:
        """Stop a run and keep its rows; one owned by another process is asked to stop."""
        return await self._in_turn(run_id, self._cancel(run_id, ask))

    async def _cancel(self, run_id: str, pass_on: PassOn) -> Run:
        if live := self._live.get(run_id):
            live.cancel()
            if live.task is not None:
                await asyncio.wait([live.task], timeout=_CANCELLED_WITHIN_S)
        run = self.as_it_is(await self.store.get_run(run_id))
        # One that was about to be handed back is open still, and nobody's.
        is_over = reply_to("cancel", run.state, Owner.NOBODY) is Reply.UNCHANGED
        if is_over or run_id in self._live:
            return run
        claim = await self.store.owners.acquire(run_id)
        if claim is None:
            await pass_on(self.store.intents, run_id, "cancel")
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
        return await self._in_turn(run_id, self._resume(run_id, budget_usd, ask))

    async def _resume(self, run_id: str, budget_usd: float | None, pass_on: PassOn) -> Run:
        await self._let_go(run_id)
        run = await self.store.get_run(run_id)
        claim = None
        if run_id not in self._live:
            claim = await self.store.owners.acquire(run_id)
        if claim is None and budget_usd is not None and not run.state.is_final:
            raise WrongState(f'run "{run_id}" is in progress; its budget stands until it ends.')
        if run_id in self._live:
            return self.as_it_is(run)
        reply = reply_to("resume", run.state, Owner.ELSEWHERE if claim is None else Owner.NOBODY)
        if reply is Reply.UNCHANGED:
            return run
        if claim is None:
            await pass_on(self.store.intents, run_id, "resume", budget_usd=budget_usd)
            return await self.store.get_run(run_id)
        failpoints.hit("resume.claimed")
        try:
            # It may have changed before it was claimed.
            run = await self.store.get_run(run_id)
            if reply_to("resume", run.state, Owner.NOBODY) is Reply.REFUSED:
                raise WrongState(f'run "{run_id}" has succeeded; there is nothing left to resume.')
            changes = raised_budget(run, budget_usd)
            if run.state.is_final:
                await self._forget_asked(run_id)
            await self._take_up(replace(run, lives=Lives()), claim, "resumed", **changes)
            await self._release_unless_live(claim)
        except BaseException:
            await self._release_unless_live(claim)
            raise
        return await self.store.get_run(run_id)

    async def _forget_asked(self, run_id: str) -> None:
        """Answer what was asked of a run before it ended: who did it may have died since."""
        for intent in await self.store.intents.unanswered():
            if intent.run_id == run_id and intent.kind in ("cancel", "explain"):
                await self.store.intents.answer(intent, Answer())

    async def explain_wait(self, run_id: str, reason: str) -> Run:
        """Keep why a system of a run in progress is away; another run is left as it is."""
        run = await self.store.get_run(run_id)
        if (live := self._live.get(run_id)) is not None:
            await live.explain_wait(reason)
        elif not run.state.is_final:
            await self.store.intents.ask(run_id, "explain", {"reason": reason})
        return await self.store.get_run(run_id)

    async def delete(self, run_id: str) -> bool:
        """Delete a run that no process is working on; return False if there is none."""
        return await self._in_turn(run_id, self._delete(run_id, ask))

    async def _delete(self, run_id: str, pass_on: PassOn) -> bool:
        await self._let_go(run_id)
        if run_id in self._live:
            raise _in_progress(run_id)
        try:
            claim = await self.store.owners.acquire(run_id)
        except UnknownRun:
            return False
        if claim is not None:
            try:
                return await self.store.delete_run(run_id, claim=claim)
            finally:
                await self.store.owners.release(claim)
        if not (await self.store.get_run(run_id)).state.is_final:
            raise _in_progress(run_id)
        await pass_on(self.store.intents, run_id, "delete")
        return True

    async def perform(self, intent: Intent) -> bool:
        """Do what another process was asked; return False if it has been done.

        Raises OwnedElsewhere if that is for a third one.
        """
        return await self._in_turn(intent.run_id, self._perform(intent))

    async def _perform(self, intent: Intent) -> bool:
        run_id = intent.run_id
        # Another process may have done it while others had their turn here.
        if not await self.store.intents.is_open(intent):
            return False
        if intent.kind == "cancel":
            await self._cancel(run_id, refer)
        elif intent.kind == "resume":
            await self._resume(run_id, intent.arguments["budget_usd"], refer)
        elif intent.kind == "delete":
            await self._delete(run_id, refer)
        elif run_id in self._live:
            await self._live[run_id].explain_wait(str(intent.arguments["reason"]))
        elif not self.store.owners.is_mine(run_id):
            await refer(self.store.intents, run_id, intent.kind)
        return True


def _in_progress(run_id: str) -> WrongState:
    return WrongState(f'run "{run_id}" is in progress. Cancel it first: cbench cancel {run_id}')
