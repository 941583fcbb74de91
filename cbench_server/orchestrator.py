"""Runs and their lives: started, queued, worked on, cancelled, resumed, handed back."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from cbench_server.digests import spec_digest
from cbench_server.errors import (
    AlreadyExists,
    CbenchError,
    LimitReached,
    RunFailed,
    ShuttingDown,
    Unencodable,
    WrongState,
)
from cbench_server.events import RowScored, RunFinished, StateChanged, StoredEvent
from cbench_server.metrics.summarize import Summarizer
from cbench_server.plan import Plan
from cbench_server.reaching import AnyCaller, SystemFinder, close_all, connect, patiently, reconnect
from cbench_server.recordings import ParentRows, Recordings, earlier_answers
from cbench_server.registry import Registry
from cbench_server.rescoring import RescoredSpool, describe_rescoring, recorded_callers
from cbench_server.resolving import (
    EvaluatorFinder,
    ResolvedDataset,
    Uploads,
    check_spec,
    parse_failure_budget,
    resolve_datasets,
    resolve_evaluators,
    resolve_metrics,
    with_registered_names,
)
from cbench_server.results import EvalRow, Failure, Summary
from cbench_server.run_config import describe_config
from cbench_server.runner import Runner
from cbench_server.runstore import RunStore
from cbench_server.scoring import Scoring
from cbench_server.spec import (
    EvaluatorRef,
    Run,
    RunSpec,
    RunState,
    SystemProgress,
)
from cbench_server.spooling import Spool
from cbench_server.summarizing import new_summarizer, read_back
from cbench_server.tokens import get_tokenizer

log = logging.getLogger(__name__)

_CANCEL_POLL_S = 1.0
_SUMMARIZED_HERE = 50_000


@dataclass(frozen=True)
class Limits:
    """How much the orchestrator takes on."""

    max_runs: int = 4
    """Runs worked on at once; others are queued."""
    max_queued: int = 100
    """Runs waiting for their turn; more are refused."""


@dataclass
class _Live:
    """A run this process holds."""

    run: Run
    lock: AbstractContextManager[bool]
    callers: list[AnyCaller] = field(default_factory=list)
    runner: Runner | None = None
    task: asyncio.Task[None] | None = None
    is_cancelled: bool = False
    summarizer: Summarizer | None = None
    """Takes rows as they are stored; None where rows must be read back."""
    summarized: int = 0
    """Rows it has taken."""


class Orchestrator:
    """Owns the live runs of this process."""

    def __init__(
        self,
        store: RunStore,
        registry: Registry,
        scoring: Scoring,
        systems: SystemFinder,
        evaluators: EvaluatorFinder,
        uploads: Uploads,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        summarize_apart: Callable[[str], Awaitable[Summary]] | None = None,
    ) -> None:
        """`summarize_apart` summarises a long stored run where it takes no memory of ours."""
        self.store = store
        self._summarize_apart = summarize_apart
        self._registry = registry
        self._scoring = scoring
        self._systems = systems
        self._evaluators = evaluators
        self._uploads = uploads
        self._limits = limits or Limits()
        self._clock = clock
        self._slots = asyncio.Semaphore(self._limits.max_runs)
        self._live: dict[str, _Live] = {}
        self._draining = False

    @property
    def is_draining(self) -> bool:
        """Whether no more work is taken."""
        return self._draining

    # What clients ask for.

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
        datasets = resolve_datasets(spec, self._registry, self._uploads)
        plans = await resolve_evaluators(spec, datasets, self._evaluators)
        resolve_metrics(spec, self._registry)
        get_tokenizer(spec.tokenizer or None)
        callers, identities = await connect(self._systems, spec)
        config = await asyncio.to_thread(describe_config, spec, callers, datasets, plans)
        run = self._new_run(spec, request_id, [caller.description.name for caller in callers])
        return await self._accept(
            replace(run, config={**config, "identities": identities}), callers
        )

    async def rescore(
        self,
        run_id: str,
        evaluators: Sequence[EvaluatorRef] = (),
        *,
        references_upload: str = "",
        labels: Mapping[str, str] | None = None,
        request_id: str = "",
    ) -> Run:
        """Score the answers of a run that is over anew, in a run of its own.

        Without evaluators, those of the run are used. References replace the
        fields of the examples with the same id.
        """
        self._check_open()
        parent = await self.store.get_run(run_id)
        if not parent.state.is_final:
            raise WrongState(f'run "{run_id}" is {parent.state}; wait until it is over.')
        if not parent.completed_rows:
            raise WrongState(f'run "{run_id}" has no rows, so there is nothing to score.')
        spec = replace(parent.spec, labels=dict(labels or {}), reuse=False)
        if evaluators:
            # The score that counted may not be among those that others give.
            spec = replace(
                spec, evaluators=tuple(evaluators), replace_evaluators=True, score_field=""
            )
        if known := await self._known(request_id, spec):
            return known
        if references_upload:
            self._uploads.count(references_upload)
        datasets = resolve_datasets(spec, self._registry, self._uploads, is_read=False)
        plans = await resolve_evaluators(spec, datasets, self._evaluators)
        run = replace(
            self._new_run(spec, request_id, parent.systems),
            parent_run_id=run_id,
            total_rows=parent.completed_rows,
            config=describe_rescoring(parent, plans, references_upload, self._clock()),
        )
        return await self._accept(run, [])

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

    async def _accept(self, run: Run, callers: list[AnyCaller]) -> Run:
        """Store a run and begin it, unless the same request made one already."""
        lock = self._lock(run.run_id)
        stored = await self.store.create_run(run)
        if stored.run_id != run.run_id:
            lock.__exit__(None, None, None)
            await close_all(callers)
            return stored
        self._launch(_Live(stored, lock, callers))
        return stored

    async def cancel(self, run_id: str) -> Run:
        """Stop a run and keep its rows; one held by another process is asked to stop."""
        live = self._live.get(run_id)
        if live is not None:
            live.is_cancelled = True
            if live.task is not None:
                live.task.cancel()
                await asyncio.wait([live.task], timeout=10)
            return await self.store.get_run(run_id)
        run = await self.store.get_run(run_id)
        if run.state.is_final:
            return run
        lock = self.store.lock_run(run_id)
        try:
            if lock.__enter__():
                await self._finish(_Live(run, lock), RunState.CANCELLED)
            else:
                await self.store.request_cancel(run_id)
        finally:
            lock.__exit__(None, None, None)
        return await self.store.get_run(run_id)

    async def resume(self, run_id: str) -> Run:
        """Take a run up where it stopped; one that is in progress is left alone."""
        self._check_open()
        if run_id in self._live:
            return await self.store.get_run(run_id)
        run = await self.store.get_run(run_id)
        if run.state is RunState.SUCCEEDED:
            raise WrongState(f'run "{run_id}" has succeeded; there is nothing left to resume.')
        lock = self._lock(run_id)
        run = replace(run, state=RunState.QUEUED, failure=None, end_time=None)
        try:
            await self.store.append(
                run_id,
                [StateChanged(RunState.QUEUED, "resumed")],
                update={
                    "state": RunState.QUEUED,
                    "failure": None,
                    "end_time": None,
                    "waiting_reason": "",
                },
            )
        except BaseException:
            lock.__exit__(None, None, None)
            raise
        self._launch(_Live(run, lock))
        return await self.store.get_run(run_id)

    async def delete(self, run_id: str) -> None:
        """Delete a run that nobody is working on."""
        if run_id in self._live:
            raise WrongState(
                f'run "{run_id}" is in progress. Cancel it first: cbench cancel {run_id}'
            )
        with self.store.lock_run(run_id) as held:
            if not held:
                raise WrongState(f'run "{run_id}" is in progress in another process.')
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
        """Take no more work; finish calls in flight within `grace` seconds; hand runs back."""
        self._draining = True
        for live in self._live.values():
            if live.runner is not None:
                live.runner.drain()
            elif live.task is not None:
                live.task.cancel()
        tasks = [live.task for live in self._live.values() if live.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=5)

    # A run's life.

    def _check_open(self) -> None:
        if self._draining:
            raise ShuttingDown("the daemon is shutting down and takes no more runs.")

    def _lock(self, run_id: str) -> AbstractContextManager[bool]:
        lock = self.store.lock_run(run_id)
        if not lock.__enter__():
            lock.__exit__(None, None, None)
            raise WrongState(f'run "{run_id}" is in progress in another process.')
        return lock

    def _launch(self, live: _Live) -> None:
        run_id = live.run.run_id
        self._live[run_id] = live
        live.task = asyncio.create_task(self._live_and_die(live), name=f"run {run_id}")
        live.task.add_done_callback(_log_death)

    async def _live_and_die(self, live: _Live) -> None:
        run_id = live.run.run_id
        try:
            async with self._slots:
                await self._work(live)
        except asyncio.CancelledError:
            if live.is_cancelled:
                await self._finish(live, RunState.CANCELLED)
        except RunFailed as error:
            await self._finish(live, RunState.FAILED, error.failure)
        except CbenchError as error:
            failure = Failure("daemon", error.reason, str(error))
            await self._finish(live, RunState.FAILED, failure)
        except Exception as error:
            log.exception("run %s broke", run_id)
            failure = Failure("daemon", "INTERNAL", f"{type(error).__name__}: {error}")
            await self._finish(live, RunState.FAILED, failure)
        finally:
            del self._live[run_id]
            live.lock.__exit__(None, None, None)
            await close_all(live.callers)

    async def _work(self, live: _Live) -> None:
        run, spec = live.run, live.run.spec
        is_rescored = bool(run.parent_run_id)
        datasets = resolve_datasets(spec, self._registry, self._uploads, is_read=not is_rescored)
        plans = await patiently(
            self.store, run, lambda: resolve_evaluators(spec, datasets, self._evaluators)
        )
        if is_rescored:
            live.callers = [*recorded_callers(run)]
        elif not live.callers:
            live.callers, live.run = await reconnect(self._systems, self.store, run, self._clock)
        await self.store.append(
            run.run_id, [StateChanged(RunState.RUNNING)], update={"state": RunState.RUNNING}
        )
        spool, recordings = await self._sources(live, datasets)
        plan = Plan(
            run_id=run.run_id,
            callers=live.callers,
            datasets=plans,
            tokenizer=get_tokenizer(spec.tokenizer or None),
            text_fields=frozenset(spec.text_fields) or None,
            repeats=spec.repeats,
            row_timeout=spec.row_timeout,
            wait_timeout=spec.wait_timeout,
            max_concurrency=spec.max_concurrency,
            failure_budget=parse_failure_budget(spec.max_failures),
            already_failed=run.failed_rows,
            already_completed=run.completed_rows,
            recordings=recordings,
            query_budget=spec.query_budget,
            generation=len(live.run.config.get("resumptions", [])),
        )
        live.runner = Runner(plan, spool, self._scoring)
        if run.completed_rows == 0:
            live.summarizer = new_summarizer(run, self._registry)
        try:
            async with asyncio.TaskGroup() as group:
                filling = group.create_task(spool.fill())
                watching = group.create_task(self._obey_cancel(live))
                await self._consume(live)
                watching.cancel()
                if self._draining:
                    filling.cancel()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        if not self._draining:
            await self._finish(live, RunState.SUCCEEDED)

    async def _sources(
        self, live: _Live, datasets: Sequence[ResolvedDataset]
    ) -> tuple[Spool, Recordings | None]:
        """Say where the run's examples come from, and the answers that need not be asked for."""
        run, readers = live.run, len(live.callers)
        if run.parent_run_id:
            await self.store.get_run(run.parent_run_id)
            upload = run.config["rescoring"]["references_upload"]
            spool = RescoredSpool(
                self.store,
                run,
                lambda: self._uploads.iterate(upload) if upload else iter(()),
                get_tokenizer(run.spec.tokenizer or None),
                readers,
            )
            return spool, ParentRows(self.store, run.parent_run_id)
        recordings = await earlier_answers(self.store, run) if run.spec.reuse else None
        sources = _openers(run.spec, datasets)
        return Spool(self.store, run.run_id, sources, readers), recordings

    async def _consume(self, live: _Live) -> None:
        assert live.runner is not None
        async for batch in live.runner.events():
            update: dict[str, Any] = {}
            for event in batch:
                if isinstance(event, StateChanged):
                    update = {"state": event.state, "waiting_reason": event.reason}
            rows = await self._append(live.run.run_id, batch, update)
            if live.summarizer is not None:
                for row in rows:
                    live.summarizer.add(row)
                live.summarized += len(rows)
                if self._summarize_apart and live.summarized > _SUMMARIZED_HERE:
                    live.summarizer = None

    async def _append(
        self, run_id: str, batch: Sequence[StoredEvent], update: Mapping[str, Any]
    ) -> list[EvalRow]:
        """Store a batch and return the rows of it, as they were stored."""
        stored = list(batch)
        try:
            await self.store.append(run_id, batch, update=update or None)
        except Unencodable:
            # One row holds what cannot be written down: it alone becomes a failure.
            for position, event in enumerate(batch):
                try:
                    await self.store.append(run_id, [event], update=update or None)
                except Unencodable as error:
                    assert isinstance(event, RowScored)
                    stored[position] = RowScored(_unstorable(event.row, error))
                    await self.store.append(run_id, [stored[position]])
        return [event.row for event in stored if isinstance(event, RowScored)]

    async def _obey_cancel(self, live: _Live) -> None:
        """Notice when another process asks for this run to stop."""
        while True:
            await asyncio.sleep(_CANCEL_POLL_S)
            if await self.store.cancel_requested(live.run.run_id):
                live.is_cancelled = True
                assert live.task is not None
                live.task.cancel()
                return

    async def _finish(self, live: _Live, state: RunState, failure: Failure | None = None) -> None:
        stored = await self.store.get_run(live.run.run_id)
        timing = dict(stored.timing)
        for system, seconds in (live.runner.timing if live.runner else {}).items():
            timing[system] = timing.get(system, 0.0) + seconds
        summary: Summary = {}
        try:
            summary = await self._summarize(live, stored)
        except Exception as error:
            log.exception("run %s cannot be summarised", stored.run_id)
            state = RunState.FAILED
            failure = Failure("daemon", "CANNOT_SUMMARIZE", f"{type(error).__name__}: {error}")
        changes: dict[str, Any] = {
            "state": state,
            "end_time": self._clock(),
            "failure": failure,
            "waiting_reason": "",
            "summary": summary,
            "timing": timing,
        }
        finished = replace(stored, **changes, last_seq=stored.last_seq + 1)
        await self.store.append(stored.run_id, [RunFinished(finished)], update=changes)

    async def _summarize(self, live: _Live, run: Run) -> Summary:
        if self._summarize_apart and run.completed_rows > _SUMMARIZED_HERE:
            return await self._summarize_apart(run.run_id)
        summarizer = live.summarizer or await read_back(self.store, run, self._registry)
        # Resampling a long run takes a second, in which others want to be served.
        return await asyncio.to_thread(summarizer.result)


def new_run_id(now: float) -> str:
    """Make an id that sorts by time of creation and can be read aloud."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{stamp}-{int(now % 1 * 1000):03d}{secrets.token_hex(3)}"


def _openers(spec: RunSpec, datasets: Sequence[ResolvedDataset]) -> list[Any]:
    tokenizer = get_tokenizer(spec.tokenizer or None)
    fields = frozenset(spec.text_fields) or None
    return [
        lambda ordinal, dataset=dataset: dataset.open(ordinal, tokenizer, fields)
        for dataset in datasets
    ]


def _unstorable(row: EvalRow, error: Unencodable) -> EvalRow:
    return replace(
        row,
        scores={},
        metadata={},
        usage=None,
        details={},
        evaluator_failures={},
        processed=None,
        primary_score="",
        failure=Failure("system", error.reason, str(error), attempts=row.attempts),
    )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The exception that says most about why a group of tasks fell."""
    leaves: list[BaseException] = []
    stack: list[BaseException] = [errors]
    while stack:
        error = stack.pop()
        if isinstance(error, BaseExceptionGroup):
            stack.extend(error.exceptions)
        else:
            leaves.append(error)
    return min(
        leaves,
        key=lambda error: (
            isinstance(error, asyncio.CancelledError),
            not isinstance(error, CbenchError),
        ),
    )


def _log_death(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("%s stopped and can be resumed", task.get_name(), exc_info=error)
