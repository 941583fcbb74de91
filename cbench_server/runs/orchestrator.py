"""The orchestrator: starts, rescores, cancels, resumes, deletes and recovers runs."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from cbench_server.errors import AlreadyExists, LimitReached, ShuttingDown, WrongState
from cbench_server.events import StateChanged
from cbench_server.runs.config import describe_config, describe_prompts
from cbench_server.runs.connections import Connections, connect
from cbench_server.runs.digests import spec_digest
from cbench_server.runs.live_run import LiveRun, Services
from cbench_server.runs.rescore import describe_rescoring
from cbench_server.runs.resolution import check_spec, resolve_metrics, with_registered_names
from cbench_server.runs.store import RunStore
from cbench_server.runs.unbuilt import check_built
from cbench_server.runs.wiring import check_score_field
from cbench_server.spec import EvaluatorRef, Run, RunSpec, RunState, SystemProgress
from cbench_server.tokens import get_tokenizer


@dataclass(frozen=True)
class Limits:
    """How much the orchestrator takes on."""

    max_runs: int = 4
    """Runs worked on at once; others are queued."""
    max_queued: int = 100
    """Runs waiting for their turn; more are refused."""


class Orchestrator:
    """Owns the live runs of this process."""

    def __init__(self, services: Services, limits: Limits | None = None) -> None:
        self.store: RunStore = services.store
        self._services = services
        self._registry = services.registry
        self._clock = services.clock
        self._limits = limits or Limits()
        self._turn = asyncio.Semaphore(self._limits.max_runs)
        self._live: dict[str, LiveRun] = {}
        self._draining = False

    @property
    def is_draining(self) -> bool:
        """Whether it has stopped taking work."""
        return self._draining

    async def start(self, spec: RunSpec, request_id: str = "") -> Run:
        """Accept a run and begin it, having made sure that everything it names is there."""
        self._check_open()
        spec = with_registered_names(spec, self._registry)
        if known := await self._known(request_id, spec):
            return known
        if len(self._live) >= self._limits.max_runs + self._limits.max_queued:
            raise LimitReached(
                f"{len(self._live)} runs are in progress or queued, the most this daemon takes. "
                "Try again later, or raise max_queued."
            )
        check_spec(spec)
        check_built(spec)
        resolve_metrics(spec, self._registry)
        get_tokenizer(spec.tokenizer or None)
        opened = await self._connect(spec, is_rescored=False)
        try:
            check_score_field(spec.score_field, opened.plans.values())
            config = await asyncio.to_thread(
                describe_config,
                spec,
                opened.callers,
                opened.datasets,
                opened.plans,
                opened.prompts,
            )
            if opened.told:
                config["prompts"] = describe_prompts(opened.prompts, opened.told)
            run = self._new_run(spec, request_id, opened.names)
            config["identities"] = opened.identities
            return await self._accept(replace(run, config=config), opened)
        except BaseException:
            await opened.close()
            raise

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
        if not parent.state.is_final:
            raise WrongState(f'run "{run_id}" is {parent.state}; wait until it is over.')
        if not parent.completed_rows:
            raise WrongState(f'run "{run_id}" has no rows, so there is nothing to score.')
        spec = replace(
            parent.spec,
            labels=dict(labels or {}),
            reuse=False,
            allow_unqualified_judges=allow_unqualified_judges,
            errata_upload=errata_upload or parent.spec.errata_upload,
            labels_upload=labels_upload or parent.spec.labels_upload,
        )
        if evaluators:
            # The score that counted may not be among those that others give.
            spec = replace(
                spec, evaluators=tuple(evaluators), replace_evaluators=True, score_field=""
            )
        if known := await self._known(request_id, spec):
            return known
        if references_upload:
            self._services.uploads.count(references_upload)
        opened = await self._connect(spec, is_rescored=True)
        try:
            run = replace(
                self._new_run(spec, request_id, parent.systems),
                parent_run_id=run_id,
                total_rows=parent.completed_rows,
                config=describe_rescoring(parent, opened.plans, references_upload, self._clock()),
            )
            return await self._accept(run, opened)
        except BaseException:
            await opened.close()
            raise

    async def _connect(self, spec: RunSpec, *, is_rescored: bool) -> Connections:
        services = self._services
        return await connect(
            spec, services.finder, services.registry, services.uploads, is_rescored=is_rescored
        )

    async def _known(self, request_id: str, spec: RunSpec) -> Run | None:
        """Return the run that a repeated request has made already."""
        known = await self.store.find_request(request_id) if request_id else None
        if known and spec_digest(known.spec) != spec_digest(spec):
            raise AlreadyExists(
                f'request id "{request_id}" started run "{known.run_id}" with another spec.'
            )
        return known

    def _new_run(self, spec: RunSpec, request_id: str, systems: Sequence[str]) -> Run:
        return Run(
            run_id=new_run_id(self._clock()),
            spec=spec,
            state=RunState.QUEUED,
            create_time=self._clock(),
            request_id=request_id,
            systems=tuple(systems),
            progress={name: SystemProgress() for name in systems},
        )

    async def _accept(self, run: Run, opened: Connections) -> Run:
        """Store a run and begin it, unless the same request made one already."""
        with self._lock(run.run_id) as lock:
            stored = await self.store.create_run(run)
            if stored.run_id == run.run_id:
                self._begin(LiveRun(self._services, stored, lock.pop_all(), opened), run.run_id)
                return stored
        await opened.close()
        return stored

    async def cancel(self, run_id: str) -> Run:
        """Stop a run and keep its rows; one held by another process is asked to stop."""
        live = self._live.get(run_id)
        if live is not None:
            live.cancel()
            if live.task is not None:
                await asyncio.wait([live.task], timeout=10)
            return await self.store.get_run(run_id)
        run = await self.store.get_run(run_id)
        if run.state.is_final:
            return run
        with self.store.lock_run(run_id) as is_held:
            if is_held:
                await LiveRun(self._services, run, ExitStack()).finish(RunState.CANCELLED)
            else:
                await self.store.request_cancel(run_id)
        return await self.store.get_run(run_id)

    async def resume(self, run_id: str) -> Run:
        """Take a run up where it stopped; one that is in progress is left alone."""
        self._check_open()
        if run_id in self._live:
            return await self.store.get_run(run_id)
        run = await self.store.get_run(run_id)
        if run.state is RunState.SUCCEEDED:
            raise WrongState(f'run "{run_id}" has succeeded; there is nothing left to resume.')
        with self._lock(run_id) as lock:
            changes = {
                "state": RunState.QUEUED,
                "failure": None,
                "end_time": None,
                "waiting_reason": "",
            }
            await self.store.append(
                run_id, [StateChanged(RunState.QUEUED, "resumed")], update=changes
            )
            run = replace(run, state=RunState.QUEUED, failure=None, end_time=None)
            self._begin(LiveRun(self._services, run, lock.pop_all()), run_id)
        return await self.store.get_run(run_id)

    async def delete(self, run_id: str) -> None:
        """Delete a run that no process is working on."""
        if run_id in self._live:
            raise WrongState(
                f'run "{run_id}" is in progress. Cancel it first: cbench cancel {run_id}'
            )
        with self._lock(run_id):
            await self.store.delete_run(run_id)

    async def recover(self) -> list[str]:
        """Resume every unfinished run that no process holds."""
        unfinished = [state for state in RunState if not state.is_final]
        resumed = []
        for run in reversed(await self.store.list_runs(limit=1000, states=unfinished)):
            try:
                await self.resume(run.run_id)
            except WrongState:
                continue
            resumed.append(run.run_id)
        return resumed

    async def drain(self, grace: float) -> None:
        """Stop taking work; finish calls in flight within `grace` seconds; hand runs back."""
        self._draining = True
        for live in self._live.values():
            live.drain()
        tasks = [live.task for live in self._live.values() if live.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=5)

    def _check_open(self) -> None:
        if self._draining:
            raise ShuttingDown("the daemon is shutting down and starts no runs.")

    def _lock(self, run_id: str) -> ExitStack:
        """Hold a run; raise WrongState if another process does."""
        stack = ExitStack()
        if not stack.enter_context(self.store.lock_run(run_id)):
            stack.close()
            raise WrongState(f'run "{run_id}" is in progress in another process.')
        return stack

    def _begin(self, live: LiveRun, run_id: str) -> None:
        self._live[run_id] = live
        live.begin(self._turn, lambda: self._forget(run_id))

    def _forget(self, run_id: str) -> None:
        del self._live[run_id]


def new_run_id(now: float) -> str:
    """Make an id that sorts by time of creation and can be read aloud."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{stamp}-{int(now % 1 * 1000):03d}{secrets.token_hex(3)}"
