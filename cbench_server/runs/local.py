"""Local evaluations, without a store: examples in memory, one system at a time."""

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cbench_server.datasets.prompts.prompt import Asking
from cbench_server.errors import InvalidSpec, RunFailed
from cbench_server.events import RowScored
from cbench_server.models.probe import probe
from cbench_server.results import EvalRow, Failure
from cbench_server.runs.answers import Told
from cbench_server.runs.arms import Arms
from cbench_server.runs.asked_again import rows_asked_again
from cbench_server.runs.conclusions import ADDED_ARMS, arms_config
from cbench_server.runs.config import describe_prompts
from cbench_server.runs.connections import Connections
from cbench_server.runs.judging import Record
from cbench_server.runs.local_cache import SystemCache
from cbench_server.runs.local_findings import Corrections
from cbench_server.runs.local_judges import check_local_judges, leaks_of
from cbench_server.runs.local_prompts import told_of
from cbench_server.runs.local_store import LocalExamples, LocalStore
from cbench_server.runs.local_systems import (
    Given,
    LocalFinder,
    caller_of,
    own_prices,
)
from cbench_server.runs.pipeline import Pipeline
from cbench_server.runs.plan import DatasetPlan, ExampleSource, Plan
from cbench_server.runs.prices import check_budget
from cbench_server.runs.progress import open_progress
from cbench_server.runs.row_cache import RowCache
from cbench_server.runs.run_money import RunMoney
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.turns import TIMED_ROWS
from cbench_server.scoring.placement import Scoring
from cbench_server.scoring.workers import WorkerPool
from cbench_server.spec import Run, RunNote, RunSpec, RunState
from cbench_server.systems.caller import Caller, SystemDescription
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.systems.own_proxy import reader_of
from cbench_server.tokens import Tokenizer

_RUN_ID = "evaluate"
Advance = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Job:
    """One call of `evaluate()` or `evaluate_memory()`, resolved."""

    spec: RunSpec
    """What was asked for, as a run of the daemon would be."""
    systems: Mapping[str, Given]
    """By name."""
    examples: list[SpooledExample]
    plans: Mapping[str, DatasetPlan]
    """How the rows of each tag are scored."""
    tokenizer: Tokenizer
    text_fields: frozenset[str] | None
    max_workers: int
    cache: RowCache | None
    progress: bool
    settings: str
    """What an answer depends on beside its example and system."""
    prompts: Mapping[str, Asking]
    """What models, and systems that answer, are told, by tag."""
    corrections: Corrections = field(default_factory=Corrections)
    reader: OpenAIProxy | None = None
    content: Callable[[SpooledExample], str] = lambda entry: entry.digest
    """Names all that an answer to an example depends on, empty where that has no name."""

    @property
    def rows_each(self) -> int:
        """How many rows each system gives."""
        return len(self.examples) * self.spec.repeats

    @property
    def told(self) -> dict[str, Told]:
        """What of that the rows of each system depend on."""
        has_reader = self.reader is not None
        found = {name: told_of(each, has_reader=has_reader) for name, each in self.systems.items()}
        return {name: told for name, told in found.items() if told}

    def new_run(self) -> Run:
        """Return the run that arms, notes and costs are told of."""
        refs = {name: given.ref for name, given in self.systems.items()}
        roles = {name: ref.role for name, ref in refs.items() if ref.role}
        config: dict[str, Any] = {
            "datasets": [{"label": tag, **plan.describe()} for tag, plan in self.plans.items()],
            **arms_config(refs, self.spec.kind),
            **({"roles": roles} if roles else {}),
            **({"prompts": describe_prompts(self.prompts, self.told)} if self.told else {}),
        }
        return Run(
            _RUN_ID,
            self.spec,
            RunState.RUNNING,
            time.time(),
            config=config,
            systems=tuple(self.systems),
        )


@dataclass
class Done:
    """What came of a job."""

    run: Run
    rows: list[EvalRow] = field(default_factory=list)
    """By system, then in the order of the examples."""
    timing: dict[str, float] = field(default_factory=dict)
    judges: list[Record] = field(default_factory=list)
    leaks: list[RunNote] = field(default_factory=list)
    """What judged systems see that they should not."""
    twice: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Rows of each system that were asked a second time, and those answered differently."""
    spent: dict[str, Any] = field(default_factory=dict)
    """What is on record of its cost and budget."""
    money_notes: list[RunNote] = field(default_factory=list)
    added: dict[str, SystemDescription] = field(default_factory=dict)
    """What the run added by itself, such as controls and anchors."""


class LocalWork:
    """Carries out one job. Belongs to one event loop."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._store = LocalStore(job.new_run(), job.examples)
        self._source = LocalExamples(self._store, _RUN_ID)
        self._money = RunMoney(self._store, own_prices(job.systems))
        self._opened = Connections(
            LocalFinder(),
            [],
            plans=dict(job.plans),
            prompts=dict(job.prompts),
            refs={name: given.ref for name, given in job.systems.items()},
            tokenizer=job.tokenizer,
        )
        self._answers: dict[str, SystemCache | None] = {}
        self._done = Done(self._store.run)

    async def run(self) -> Done:
        """Make the rows of every system, and of what the job adds, in order."""
        job, opened = self._job, self._opened
        workers = WorkerPool()
        display = open_progress(job.progress, dict.fromkeys(job.systems, job.rows_each))
        try:
            with display:
                scoring = Scoring(workers)
                for name, given in job.systems.items():
                    known = await self._known(name, scoring)
                    display.advance(name, len(known), 0)
                    if len(known) < job.rows_each:
                        await probe(name, given.system)
                if job.reader is not None:
                    await probe("the reader", job.reader)
                    await job.reader.close_connections()
                    opened.reader = reader_of(job.reader)
                kind, width = job.spec.kind, job.max_workers
                opened.callers = [caller_of(each, kind, width) for each in job.systems.values()]
                self._check_budget()
                await self._money.open(self._store.run, opened)
                self._done.judges = await check_local_judges(job.plans, job.examples)
                self._done.leaks = leaks_of(job.plans, job.examples, job.spec.kind)
                await self._run_systems(scoring, display.advance)
                await self._run_added(scoring)
            return await self._concluded()
        finally:
            for caller in opened.callers:
                await caller.close()
            if opened.reader is not None:
                await opened.reader.close()
            await workers.close()

    def _check_budget(self) -> None:
        spec, opened = self._job.spec, self._opened
        check_budget(spec, opened.callers, opened.reader, opened.plans, opened.prompts)
        for name in own_prices(self._job.systems) if spec.budget_usd is not None else ():
            raise InvalidSpec(
                f'budget_usd: the proxy "{name}" makes its own requests, and what they may cost '
                "cannot be told before. Give an OpenAIProxy without build_messages."
            )

    async def _known(self, name: str, scoring: Scoring) -> list[EvalRow]:
        """Take the rows of a system whose answers are cached."""
        self._answers[name] = answers = self._answers_of(name)
        job = self._job
        if answers is None:
            return []
        known = await answers.known(job.examples, job.spec.repeats, scoring)
        for row in known:
            # The same system may have had another name.
            row.system = name
        self._store.add(known)
        return known

    def _answers_of(self, name: str) -> SystemCache | None:
        """Look at a system before it is called: it may change as it works."""
        job = self._job
        if job.cache is None:
            return None
        content = self._content_with_prompt if name in job.told else job.content
        return SystemCache(job.cache, job.systems[name].system, job.settings, job.plans, content)

    def _content_with_prompt(self, entry: SpooledExample) -> str:
        content = self._job.content(entry)
        asking = self._job.prompts[entry.dataset]
        return content and f"{content}\n{asking.prompt.digest}"

    async def _run_systems(self, scoring: Scoring, advance: Advance) -> None:
        """Run one system after another; with a budget all at once, example by example."""
        callers = self._opened.callers
        has_budget = self._job.spec.budget_usd is not None
        for group in [callers] if has_budget else [[caller] for caller in callers]:
            if self._money.is_stopped:
                return
            await self._work(self._plan(group), self._source, scoring, advance)
            for caller in group:
                await caller.close()
                if answers := self._answers[caller.description.name]:
                    answers.warn_of_changes()

    async def _run_added(self, scoring: Scoring) -> None:
        """Let what the job adds by itself follow its systems, as in a run of the daemon."""
        for arms_of in ADDED_ARMS:
            arms = await arms_of(self._store, self._store.run, self._opened)
            if arms is not None and not self._money.is_stopped:
                await self._run_arms(arms, scoring)

    async def _run_arms(self, arms: Arms, scoring: Scoring) -> None:
        await arms.announce(self._store, self._store.run)
        self._done.added |= {each.description.name: each.description for each in arms.callers}
        plan = arms.planned(self._plan(arms.callers))
        try:
            await self._work(plan, arms.source or self._source, scoring, lambda *_: None)
        finally:
            for caller in arms.callers:
                await caller.close()

    async def _work(
        self, plan: Plan, source: ExampleSource, scoring: Scoring, advance: Advance
    ) -> None:
        pipeline = Pipeline(plan, source, scoring)
        async for batch in pipeline.events():
            rows = [event.row for event in batch if isinstance(event, RowScored)]
            self._store.add(rows)
            for row in rows:
                if answers := self._answers.get(row.system):
                    answers.keep(self._job.examples[row.ordinal], row)
                advance(row.system, 1, row.failure is not None)
        self._done.timing |= pipeline.timing
        self._done.twice |= pipeline.asked_again

    def _plan(self, callers: Sequence[Caller]) -> Plan:
        job, spec = self._job, self._job.spec
        return Plan(
            run_id=_RUN_ID,
            callers=callers,
            datasets=job.plans,
            tokenizer=job.tokenizer,
            text_fields=job.text_fields,
            row_timeout=spec.row_timeout,
            wait_timeout=math.inf,
            max_concurrency=job.max_workers,
            repeats=spec.repeats,
            is_width_fixed=True,
            timed_rows=TIMED_ROWS if spec.timed_rows is None else spec.timed_rows,
            asked_again=rows_asked_again(spec),
            kind=spec.kind,
            reader=self._opened.reader,
            query_budget=spec.query_budget,
            prompts=dict(job.prompts),
            anchors=frozenset(self._store.run.anchors),
            money=self._money.money,
        )

    async def _concluded(self) -> Done:
        done, run = self._done, self._store.run
        state, failure = RunState.SUCCEEDED, None
        try:
            self._money.check()
        except RunFailed as error:
            state, failure = RunState.FAILED, error.failure
            warnings.warn(_stopped(failure, self._job.cache is not None), stacklevel=2)
        done.spent, done.money_notes = await self._money.described(run, state)
        # What the ledger has kept is in it by now.
        run = self._store.run
        done.run = replace(run, state=state, failure=failure, end_time=time.time())
        done.rows = [row for name in run.systems for row in self._store.rows_of(name)]
        return done


def _stopped(failure: Failure, is_cached: bool) -> str:
    way = "Call it again with a larger budget_usd"
    if is_cached:
        return f"{failure.message}. {way}: what is in cache_dir is not asked again."
    return f"{failure.message}. {way}, and with cache_dir, so that answers are kept."
