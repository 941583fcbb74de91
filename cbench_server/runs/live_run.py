"""Live run: one that this process works on, and all that it holds meanwhile."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from cbench_server.errors import CbenchError, RunFailed, Unencodable
from cbench_server.events import RowScored, RunFinished, StateChanged, StoredEvent
from cbench_server.metrics.summary import Summarized, Summarizer
from cbench_server.registry import Registry
from cbench_server.results import EvalRow, Failure
from cbench_server.runs.answers import earlier_answers
from cbench_server.runs.connections import Connections, Finder, check_systems, connect, wait_for
from cbench_server.runs.controls import ControlCaller, control_notes, controls_of, wanted_controls
from cbench_server.runs.judge_notes import Findings
from cbench_server.runs.judging import CheckMemory, Checks
from cbench_server.runs.model_notes import model_notes
from cbench_server.runs.padding import padding_notes
from cbench_server.runs.pipeline import Pipeline
from cbench_server.runs.plan import Plan
from cbench_server.runs.rescore import Rescoring
from cbench_server.runs.resolution import Uploads, parse_failure_budget
from cbench_server.runs.rows import unstorable_row
from cbench_server.runs.run_judges import RunJudges
from cbench_server.runs.spool import Spool
from cbench_server.runs.store import RunStore
from cbench_server.runs.summary import new_summarizer, read_back
from cbench_server.runs.time_notes import time_notes
from cbench_server.runs.turns import TIMED_ROWS
from cbench_server.scoring.placement import Scoring
from cbench_server.spec import Run, RunState, renewed
from cbench_server.systems.caller import Caller
from cbench_server.tokens import get_tokenizer

log = logging.getLogger(__name__)

_CANCEL_POLL_S = 1.0
_SUMMARIZED_HERE = 50_000


@dataclass(frozen=True)
class Services:
    """What runs are worked on with; shared by all runs of a process."""

    store: RunStore
    registry: Registry
    scoring: Scoring
    finder: Finder
    uploads: Uploads
    clock: Callable[[], float]
    checks: Checks = field(default_factory=CheckMemory)
    """What judges said of controls in earlier runs."""
    summarize_apart: Callable[[str], Awaitable[Summarized]] | None = None
    """Summarises a long stored run where it takes no memory of ours."""


class LiveRun:
    """One run this process holds: its lock, its connections, its tasks.

    Args:
        lock: Kept until the run is over, or given back.
        connections: What is open already; None to open it when the run's turn comes.
    """

    def __init__(
        self,
        services: Services,
        run: Run,
        lock: ExitStack,
        connections: Connections | None = None,
    ) -> None:
        self._services = services
        self._store = services.store
        self._run = run
        self._lock = lock
        self._connections = connections
        self._work: Pipeline | Rescoring | None = None
        self._judges = RunJudges(services)
        self._is_cancelled = False
        self._is_draining = False
        # Takes rows as they are stored; None where rows must be read back.
        self._summarizer: Summarizer | None = None
        self._summarized = 0
        self._timing: dict[str, float] = {}
        """Of the systems, while their controls are at work."""
        self.task: asyncio.Task[None] | None = None

    def begin(self, turn: asyncio.Semaphore, ended: Callable[[], None]) -> None:
        """Work on the run when its turn comes; `ended` is called when it is let go."""
        name = f"run {self._run.run_id}"
        self.task = asyncio.create_task(self._live(turn, ended), name=name)
        self.task.add_done_callback(_log_death)

    def cancel(self) -> None:
        """Stop; the run ends as cancelled, with the rows it has."""
        self._is_cancelled = True
        if self.task is not None:
            self.task.cancel()

    def drain(self) -> None:
        """Finish the calls in flight and let go; another process may take the run up."""
        self._is_draining = True
        if self._work is not None:
            self._work.drain()
        elif self.task is not None:
            self.task.cancel()

    async def _live(self, turn: asyncio.Semaphore, ended: Callable[[], None]) -> None:
        try:
            async with turn:
                await self._go()
        except asyncio.CancelledError:
            if self._is_cancelled:
                await self.finish(RunState.CANCELLED)
        except RunFailed as error:
            await self.finish(RunState.FAILED, error.failure)
        except CbenchError as error:
            failure = Failure("daemon", error.reason, str(error))
            await self.finish(RunState.FAILED, failure)
        except Exception as error:
            log.exception("run %s broke", self._run.run_id)
            failure = Failure("daemon", "INTERNAL", f"{type(error).__name__}: {error}")
            await self.finish(RunState.FAILED, failure)
        finally:
            ended()
            self._lock.close()
            if self._connections is not None:
                await self._connections.close()

    async def _go(self) -> None:
        if self._connections is None:
            await self._reconnect()
        await self._store.append(
            self._run.run_id, [StateChanged(RunState.RUNNING)], update={"state": RunState.RUNNING}
        )
        self._run = await self._judges.admit(self._run, self._opened)
        spool: Spool | None = None
        if self._run.parent_run_id:
            self._work = self._rescoring()
        else:
            spool = self._spool()
            self._work = Pipeline(await self._plan(), spool, self._services.scoring)
            spool.pause_until(self._work.timed)
        if self._run.completed_rows == 0:
            self._summarizer = new_summarizer(self._run, self._services.registry)
        try:
            async with asyncio.TaskGroup() as group:
                filling = group.create_task(spool.fill()) if spool is not None else None
                watching = group.create_task(self._obey_cancel())
                await self._consume(self._work)
                if filling is not None and not self._is_draining:
                    await filling
                    await self._run_controls()
                watching.cancel()
                if self._is_draining and filling is not None:
                    filling.cancel()
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        if not self._is_draining:
            await self.finish(RunState.SUCCEEDED)

    async def _run_controls(self) -> None:
        """Add matched controls, which go by what the systems have left, if they are wanted."""
        if not self._run.spec.matched_controls:
            return
        stored = await self._store.get_run(self._run.run_id)
        controls = controls_of(stored) or await wanted_controls(self._store, stored)
        if not controls:
            return
        names = [control.name for control in controls]
        changes: dict[str, Any] = {
            "systems": (*(name for name in stored.systems if name not in names), *names),
            "config": {
                **stored.config,
                "controls": [[control.leader, control.cut] for control in controls],
                "repeats": {control.name: control.repeats(stored.spec) for control in controls},
            },
        }
        await self._store.append(stored.run_id, [], update=changes)
        self._run = replace(stored, **changes)
        tokenizer = get_tokenizer(stored.spec.tokenizer or None)
        callers: list[Caller] = [
            ControlCaller(control, self._store, self._run, tokenizer) for control in controls
        ]
        plan = replace(
            await self._plan(recalls=False),
            callers=callers,
            repeats_of=self._run.config["repeats"],
        )
        spool = Spool(self._store, stored.run_id, [], len(callers))
        await spool.fill()
        self._timing = {**self._work.timing} if self._work is not None else {}
        work = self._work = Pipeline(plan, spool, self._services.scoring)
        try:
            await self._consume(work)
        finally:
            for caller in callers:
                await caller.close()

    # What it works with.

    async def _reconnect(self) -> None:
        run, services = self._run, self._services
        is_rescored = bool(run.parent_run_id)
        self._connections = await wait_for(
            self._store,
            run,
            lambda: connect(
                run.spec,
                services.finder,
                services.registry,
                services.uploads,
                is_rescored=is_rescored,
            ),
        )
        if not is_rescored:
            opened = self._connections
            self._run = await check_systems(self._store, run, opened, services.clock)

    @property
    def _opened(self) -> Connections:
        assert self._connections is not None
        return self._connections

    async def _plan(self, *, recalls: bool = True) -> Plan:
        run, spec, opened = self._run, self._run.spec, self._opened
        return Plan(
            run_id=run.run_id,
            callers=opened.callers,
            datasets=opened.plans,
            tokenizer=get_tokenizer(spec.tokenizer or None),
            text_fields=frozenset(spec.text_fields) or None,
            repeats=spec.repeats,
            row_timeout=spec.row_timeout,
            wait_timeout=spec.wait_timeout,
            max_concurrency=spec.max_concurrency,
            failure_budget=parse_failure_budget(spec.max_failures),
            already_failed=run.failed_rows,
            already_completed=run.completed_rows,
            kind=spec.kind,
            reader=opened.reader,
            answers=await earlier_answers(self._store, run) if spec.reuse and recalls else None,
            query_budget=spec.query_budget,
            prompts=opened.prompts,
            generation=len(run.config.get("resumptions", [])),
            timed_rows=TIMED_ROWS if spec.timed_rows is None else spec.timed_rows,
            seed=spec.seed,
        )

    def _spool(self) -> Spool:
        run, spec, opened = self._run, self._run.spec, self._opened
        tokenizer = get_tokenizer(spec.tokenizer or None)
        fields = frozenset(spec.text_fields) or None
        sources: list[Any] = [
            lambda ordinal, dataset=dataset: dataset.open(ordinal, tokenizer, fields)
            for dataset in opened.datasets
        ]
        readers, is_fresh = len(opened.callers), run.completed_rows == 0
        return Spool(self._store, run.run_id, sources, readers, is_fresh=is_fresh)

    def _rescoring(self) -> Rescoring:
        run, uploads = self._run, self._services.uploads
        upload = run.config["rescoring"]["references_upload"]
        return Rescoring(
            self._store,
            run,
            self._opened.plans,
            self._services.scoring,
            get_tokenizer(run.spec.tokenizer or None),
            lambda: uploads.iterate(upload) if upload else iter(()),
        )

    # Rows on their way into the store.

    async def _consume(self, work: Pipeline | Rescoring) -> None:
        async for batch in work.events():
            update: dict[str, Any] = {}
            self._judges.mark(batch)
            for event in batch:
                if isinstance(event, StateChanged):
                    update = {"state": event.state, "waiting_reason": event.reason}
            rows = await self._append(batch, update)
            if self._summarizer is not None:
                self._summarizer.extend(rows)
                self._summarized += len(rows)
                if self._services.summarize_apart and self._summarized > _SUMMARIZED_HERE:
                    self._summarizer = None

    async def _append(
        self, batch: Sequence[StoredEvent], update: Mapping[str, Any]
    ) -> list[EvalRow]:
        """Store a batch and return the rows of it, as they were stored."""
        run_id = self._run.run_id
        stored = list(batch)
        try:
            await self._store.append(run_id, batch, update=update or None)
        except Unencodable:
            # One row holds what cannot be written down: it alone becomes a failure.
            for position, event in enumerate(batch):
                try:
                    await self._store.append(run_id, [event], update=update or None)
                except Unencodable as error:
                    assert isinstance(event, RowScored)
                    stored[position] = RowScored(unstorable_row(event.row, error))
                    await self._store.append(run_id, [stored[position]])
        return [event.row for event in stored if isinstance(event, RowScored)]

    async def _obey_cancel(self) -> None:
        """Notice when another process asks for this run to stop."""
        while True:
            await asyncio.sleep(_CANCEL_POLL_S)
            if await self._store.cancel_requested(self._run.run_id):
                self.cancel()
                return

    # Its end.

    async def finish(self, state: RunState, failure: Failure | None = None) -> None:
        """Summarise the run and store its end."""
        stored = await self._store.get_run(self._run.run_id)
        timing = dict(stored.timing)
        taken = {**self._timing, **(self._work.timing if self._work else {})}
        for system, seconds in taken.items():
            timing[system] = timing.get(system, 0.0) + seconds
        summarized = Summarized({})
        found = Findings()
        try:
            summarized = await self._summarize(stored)
            summarised = replace(stored, summary=summarized.summary)
            found = await self._judges.explain(summarised, self._connections)
            for system, values in found.values.items():
                summarized.summary.setdefault(system, {}).update(values)
        except Exception as error:
            log.exception("run %s cannot be summarised", stored.run_id)
            state = RunState.FAILED
            failure = Failure("daemon", "CANNOT_SUMMARIZE", f"{type(error).__name__}: {error}")
        changes: dict[str, Any] = {
            "state": state,
            "end_time": self._services.clock(),
            "failure": failure,
            "waiting_reason": "",
            "summary": summarized.summary,
            "config": {
                **stored.config,
                **({"judging": found.facts} if found.facts else {}),
                "headlines": {name: [*scores] for name, scores in summarized.headlines.items()},
                "metric_failures": summarized.failures,
            },
            "timing": timing,
            "notes": renewed(
                stored.notes,
                [
                    *time_notes(summarized.summary, self._connections),
                    *model_notes(stored, summarized.summary),
                    *padding_notes(stored, summarized.summary),
                    *found.notes,
                    *await control_notes(self._store, stored),
                ],
            ),
        }
        finished = replace(stored, **changes, last_seq=stored.last_seq + 1)
        await self._store.append(stored.run_id, [RunFinished(finished)], update=changes)

    async def _summarize(self, run: Run) -> Summarized:
        apart = self._services.summarize_apart
        if apart and run.completed_rows > _SUMMARIZED_HERE:
            return await apart(run.run_id)
        summarizer = self._summarizer
        if summarizer is None:
            summarizer = await read_back(self._store, run, self._services.registry)
        # Resampling a long run takes a second, in which others want to be served.
        return await asyncio.to_thread(summarizer.result)


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
