"""Live run: the work on one run and its end, with all that is open meanwhile."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cbench_server.durable import failpoints
from cbench_server.errors import (
    ComponentAway,
    ExamplesAway,
    LostClaim,
    RunFailed,
    StoreAway,
    Unencodable,
    contained,
    said,
)
from cbench_server.events import RowScored, RunFinished, StateChanged, StoredEvent
from cbench_server.metrics.summary import Summarized, Summarizer
from cbench_server.models.tracing import under
from cbench_server.results import EvalRow, Failure
from cbench_server.runs.answers import earlier_answers
from cbench_server.runs.arms import Arms
from cbench_server.runs.asked_again import rows_asked_again
from cbench_server.runs.conclusions import ADDED_ARMS, conclude
from cbench_server.runs.conduct import add_conduct
from cbench_server.runs.connections import Connections, check_systems, connect, wait_for
from cbench_server.runs.finished import may_be_partial
from cbench_server.runs.load import Load
from cbench_server.runs.model_notes import model_notes
from cbench_server.runs.patience import Patience
from cbench_server.runs.pipeline import Pipeline
from cbench_server.runs.plan import ExampleSource, Plan
from cbench_server.runs.rescore import Rescoring
from cbench_server.runs.resolution import parse_failure_budget
from cbench_server.runs.resolved_dataset import sources_of
from cbench_server.runs.rows import unstorable_row
from cbench_server.runs.run_judges import RunJudges
from cbench_server.runs.run_money import RunMoney
from cbench_server.runs.services import Services
from cbench_server.runs.shortfalls import counted
from cbench_server.runs.spool import Spool
from cbench_server.runs.suites import counted_suites
from cbench_server.runs.summary import checked, figure_notes, lasting, new_summarizer, read_back
from cbench_server.runs.summary_notes import incident_notes, summary_notes
from cbench_server.runs.task_errors import first_error
from cbench_server.runs.time_notes import time_notes
from cbench_server.runs.turns import TIMED_ROWS
from cbench_server.runs.waiting import Waiting
from cbench_server.scoring.incidents import INCIDENTS, Incidents
from cbench_server.spec import Run, RunState, renewed
from cbench_server.tokens import get_tokenizer

log = logging.getLogger(__name__)

_SUMMARIZED_HERE = 50_000


class LiveRun:
    """One run at work, for its owner (run_owner.py).

    Args:
        connections: What is open already; None to open it when the run's turn comes.
    """

    def __init__(
        self, services: Services, run: Run, connections: Connections | None = None
    ) -> None:
        self._store = services.store
        self.waiting = Waiting(services.store, run.run_id)
        self._patience = Patience(run.spec.wait_timeout, self.waiting, is_heard=bool(run.heard))
        patient = services.scoring.through(self._patience.call)
        self._services = services = replace(services, scoring=patient)
        self._run = run
        self._connections = connections
        self._work: Pipeline | Rescoring | None = None
        self._judges = RunJudges(services, self._patience.read)
        self._money = RunMoney(services.store)
        self.is_draining = False
        """Whether no more calls are made, so that work may end before all rows are there."""
        # Takes rows as they are stored; None where rows must be read back.
        self._summarizer: Summarizer | None = None
        self._timing: dict[str, float] = {}
        """Of the systems, while what the run adds is at work."""
        self._asked_again: dict[str, tuple[int, int]] = {}
        self._incidents: Incidents = Incidents()

    def drain(self) -> bool:
        """Start no more calls, and let work end with those in flight; False if none has begun."""
        self.is_draining = True
        if self._work is not None:
            self._work.drain()
        return self._work is not None

    @property
    def load(self) -> Load:
        """What it has under way."""
        load = self._work.load if isinstance(self._work, Pipeline) else Load()
        load.budget_usd, load.budget_spent_usd = self._money.budget
        return load

    async def close(self) -> None:
        """Let go of what is open."""
        if self._connections is not None:
            await self._connections.close()

    async def go(self) -> None:
        """Make the rows that are missing, as far as that can be done."""
        run, tracer = self._run, self._services.tracer
        INCIDENTS.set(self._incidents)
        with under(tracer.run(run.run_id, {"cbench.kind": run.spec.kind}) if tracer else None):
            await self._go()

    async def _go(self) -> None:
        if self._connections is None:
            await self._reconnect()
        began = StateChanged(RunState.RUNNING, self._judges.announced(self._run, self._opened))
        await self._store.append(self._run.run_id, [began], update={"state": RunState.RUNNING})
        await self._money.open(self._run, self._opened)
        if self._opened.reader is not None:
            self._opened.reader.through = self._patience.call
        self._run = await self._patience.call("the judge", self._admit_judges)
        await self._money.keep()
        spool: Spool | None = None
        if self._run.parent_run_id:
            self._work = self._rescoring()
        else:
            spool = self._spool()
            self._work = self._pipeline(await self._plan(), spool)
            self._asked_again = self._work.asked_again
            spool.pause_until(self._work.timed)
        if self._run.completed_rows == 0 and not may_be_partial(self._run):
            self._summarizer = new_summarizer(self._run, self._services.registry)
        try:
            async with asyncio.TaskGroup() as group:
                filling = group.create_task(spool.fill()) if spool is not None else None
                await self._consume(self._work)
                if filling is not None and not self.is_draining:
                    await filling
                    await self._run_added()
                if self.is_draining and filling is not None:
                    filling.cancel()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None
        if self.is_draining:
            await self._money.keep()
        else:
            self._money.check()

    async def _admit_judges(self) -> Run:
        try:
            return await self._judges.admit(self._run, self._opened)
        except RunFailed as error:
            # It was to be asked about its controls, and is waited for as it is for rows.
            away = error.__cause__
            if isinstance(away, ComponentAway) and not isinstance(away, ExamplesAway):
                raise away from None
            raise

    async def _run_added(self) -> None:
        """Let what the run adds by itself follow its systems."""
        for arms_of in ADDED_ARMS:
            stored = await self._store.get_run(self._run.run_id)
            arms = await arms_of(self._store, stored, self._opened)
            if arms is not None and not (self.is_draining or self._money.is_stopped):
                await self._run_arms(stored, arms)

    async def _run_arms(self, stored: Run, arms: Arms) -> None:
        self._run = await arms.announce(self._store, stored)
        plan = arms.planned(await self._plan(recalls=False))
        examples = await arms.examples(self._store, stored.run_id)
        self._timing |= self._work.timing if self._work is not None else {}
        work = self._work = self._pipeline(plan, examples)
        try:
            await self._consume(work)
        finally:
            for caller in arms.callers:
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
                recorded=run.config if is_rescored else None,
            ),
        )
        if not is_rescored:
            opened = self._connections
            self._run = await check_systems(self._store, run, opened, services.clock)

    @property
    def _opened(self) -> Connections:
        assert self._connections is not None
        return self._connections

    def _pipeline(self, plan: Plan, examples: ExampleSource) -> Pipeline:
        return Pipeline(plan, examples, self._services.scoring, held=self._services.held)

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
            heard=run.heard,
            kind=spec.kind,
            reader=opened.reader,
            answers=await earlier_answers(self._store, run) if spec.reuse and recalls else None,
            query_budget=spec.query_budget,
            prompts=opened.prompts,
            generation=len(run.config.get("resumptions", [])),
            timed_rows=TIMED_ROWS if spec.timed_rows is None else spec.timed_rows,
            seed=spec.seed,
            asked_again=rows_asked_again(spec),
            anchors=frozenset(run.anchors),
            money=self._money.money,
        )

    def field_of(self, who: str) -> str:
        """Return the path of what the spec says of a system, an evaluator or the reader."""
        fields = {"the reader": "spec.reader"}
        for place, dataset in enumerate(self._run.spec.datasets):
            fields[f'dataset "{dataset.label}"'] = f"spec.datasets[{place}]"
        for place, ref in enumerate(self._run.spec.evaluators):
            fields[f'evaluator "{ref.label or ref.name}"'] = f"spec.evaluators[{place}]"
        for name, place in self._opened.places.items() if self._connections else ():
            fields[f'system "{name}"'] = f"spec.systems[{place}]"
        return fields.get(who, "")

    def _spool(self) -> Spool:
        run, opened = self._run, self._opened
        sources = sources_of(run, opened.datasets)
        readers, is_fresh = len(opened.callers), run.completed_rows == 0
        read = self._patience.read
        return Spool(self._store, run.run_id, sources, readers, is_fresh=is_fresh, read=read)

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
            self._judges.mark(batch)
            rows = await self._append(*self.waiting.explained(batch))
            if self._summarizer is not None:
                self._summarizer.extend(rows)
                if self._services.summarize_apart and self._summarizer.taken > _SUMMARIZED_HERE:
                    self._summarizer = None

    async def _append(
        self, batch: Sequence[StoredEvent], update: Mapping[str, Any]
    ) -> list[EvalRow]:
        """Store a batch and return the rows of it, as they were stored."""
        run_id, stored = self._run.run_id, list(batch)
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

    # Its end.

    async def finish(self, state: RunState, failure: Failure | None = None) -> None:
        """Summarise the run and store its end, which it has even where that cannot be done."""
        stored = await self._store.get_run(self._run.run_id)
        failpoints.hit("summary.before")
        changes: dict[str, Any] = {}
        try:
            with contained("what the figures are made by"):
                await self._conclude(stored, *self._money.ending(state, failure), changes)
            await self._end(stored, changes)
        except (StoreAway, LostClaim):
            raise
        except Exception as error:
            log.exception("run %s cannot be summarised", stored.run_id)
            if isinstance(error, Unencodable):
                changes.clear()
            why = Failure("daemon", "CANNOT_SUMMARIZE", said(error))
            changes |= {"state": RunState.FAILED, "failure": why}
            await self._end(await self._store.get_run(stored.run_id), changes)

    async def _end(self, stored: Run, changes: Mapping[str, Any]) -> None:
        # A clock may have been put back since.
        end_time = max(stored.create_time, self._services.clock())
        update = {**changes, "end_time": end_time, "waiting_reason": ""}
        finished = replace(stored, **update, last_seq=stored.last_seq + 1)
        failpoints.hit("finish.before")
        await self._store.append(stored.run_id, [RunFinished(finished)], update=update)
        failpoints.hit("finish.after")

    async def _conclude(
        self, stored: Run, state: RunState, failure: Failure | None, changes: dict[str, Any]
    ) -> None:
        """Note what a run's end changes in it, as far as that can be told."""
        timing = dict(stored.timing)
        taken = {**self._timing, **(self._work.timing if self._work else {})}
        timing |= {name: timing.get(name, 0.0) + seconds for name, seconds in taken.items()}
        changes |= {"timing": timing, "summary": {}}
        # A parent that was resumed since may have got more rows, which are rescored as well.
        if stored.parent_run_id and stored.completed_rows > (stored.total_rows or 0):
            changes["total_rows"] = stored.completed_rows
        spent, money_notes = await self._money.described(stored, state)
        changes["config"] = {**stored.config, **spent}
        changes["notes"] = renewed(lasting(stored), money_notes)
        counts: dict[str, Any] = {"datasets": await counted(self._store, stored)}
        counts |= counted_suites({**stored.config, **counts})
        summarized = checked(await self._summarize(stored), counts, state)
        arms = await conclude(self._store, stored, summarized.summary)
        summarised = replace(stored, summary=summarized.summary)
        found = await self._judges.explain(summarised, self._connections)
        await add_conduct(found, self._store, summarised, self._asked_again)
        for system, values in found.values.items():
            summarized.summary.setdefault(system, {}).update(values)
        changes |= {
            "state": state,
            "failure": failure,
            "summary": summarized.summary,
            "config": {
                **stored.config,
                **arms.config,
                **spent,
                **({"judging": found.facts} if found.facts else {}),
                **counts,
                **({"asked_again": self._asked_again} if self._asked_again else {}),
                "headlines": {name: [*scores] for name, scores in summarized.headlines.items()},
                "metric_failures": summarized.failures,
            },
            "notes": renewed(
                lasting(stored),
                [
                    *money_notes,
                    *figure_notes(counts, stored.spec.group_by, summarized.summary, state),
                    *time_notes(summarized.summary, self._connections),
                    *model_notes(stored, summarized.summary),
                    *summary_notes(summarized, stored.rows_done),
                    *incident_notes(self._incidents),
                    *found.notes,
                    *arms.notes,
                ],
            ),
        }

    async def _summarize(self, run: Run) -> Summarized:
        apart = self._services.summarize_apart
        if apart and run.completed_rows > _SUMMARIZED_HERE:
            # A store that is away is waited for here, and read here then.
            with suppress(StoreAway):
                return await apart(run.run_id, run.completed_rows)
        summarizer = self._summarizer
        # Who is stopped does not take the rows that were just being stored.
        if summarizer is None or summarizer.taken != run.completed_rows:
            summarizer = await read_back(self._store, run, self._services.registry)
        # Resampling a long run takes a second, in which others want to be served.
        return await asyncio.to_thread(summarizer.result, run.unranked)
