"""Local evaluations, without a store: examples in memory, one system at a time."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from cbench_server.comparison import compare_two
from cbench_server.events import RowScored
from cbench_server.metrics.summary import Summarized, Summarizer
from cbench_server.results import EvalResult, EvalRow
from cbench_server.runs.judge_notes import explain
from cbench_server.runs.judging import mark_rows
from cbench_server.runs.local_cache import SystemCache
from cbench_server.runs.local_judges import check_local_judges, described_judges
from cbench_server.runs.pipeline import Pipeline
from cbench_server.runs.plan import DatasetPlan, Plan
from cbench_server.runs.progress import open_progress
from cbench_server.runs.row_cache import RowCache
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.turns import TIMED_ROWS
from cbench_server.runs.verdicts import by_judge
from cbench_server.scoring.placement import Scoring
from cbench_server.scoring.workers import WorkerPool
from cbench_server.spec import RunSpec
from cbench_server.systems.caller import Caller
from cbench_server.tokens import Tokenizer
from cbench_server.types import Metric

_Result = TypeVar("_Result")

Config = Callable[[Sequence[EvalRow]], dict[str, Any]]
"""Records how rows were made."""


@dataclass(frozen=True)
class Job:
    """One call of `evaluate()` or `evaluate_memory()`, resolved."""

    systems: Mapping[str, Any]
    """By name."""
    connect: Callable[[Any, int], Caller]
    """Makes what calls a system, with so many threads."""
    examples: list[SpooledExample]
    plans: Mapping[str, DatasetPlan]
    """How the rows of each tag are scored."""
    tokenizer: Tokenizer
    text_fields: frozenset[str] | None
    max_workers: int
    cache: RowCache | None
    timeout: float
    progress: bool
    settings: str
    """What an answer depends on beside its example and system."""
    kind: Literal["process", "memory"] = "process"
    query_budget: int | None = None
    timed_rows: int = TIMED_ROWS
    content: Callable[[SpooledExample], str] = lambda entry: entry.digest
    """Names all that an answer to an example depends on, empty where that has no name."""

    async def run(self) -> tuple[list[EvalRow], dict[str, float]]:
        """Make the rows of every system, in order."""
        rows: list[EvalRow] = []
        timing: dict[str, float] = {}
        workers = WorkerPool()
        display = open_progress(self.progress, dict.fromkeys(self.systems, len(self.examples)))
        try:
            with display:
                scoring = Scoring(workers)
                for name in self.systems:
                    started = time.monotonic()
                    made = await self._run_system(name, scoring, display.advance)
                    timing[name] = time.monotonic() - started
                    rows.extend(sorted(made, key=lambda row: row.ordinal))
        finally:
            await workers.close()
        return rows, timing

    async def _run_system(
        self,
        name: str,
        scoring: Scoring,
        advance: Callable[[str, int, int], None],
    ) -> list[EvalRow]:
        system = self.systems[name]
        answers, known = self._answers_of(system), dict[int, EvalRow]()
        if answers is not None:
            known = await answers.known(self.examples, scoring)
        advance(name, len(known), 0)
        caller = self.connect(system, self.max_workers)
        plan = Plan(
            run_id="evaluate",
            callers=[caller],
            datasets=self.plans,
            tokenizer=self.tokenizer,
            text_fields=self.text_fields,
            row_timeout=self.timeout,
            max_concurrency=self.max_workers,
            is_width_fixed=True,
            timed_rows=self.timed_rows,
            kind=self.kind,
            query_budget=self.query_budget,
        )
        made = list(known.values())
        pipeline = Pipeline(plan, _ListSource(self.examples, known), scoring)
        try:
            async for batch in pipeline.events():
                rows = [event.row for event in batch if isinstance(event, RowScored)]
                made += rows
                if answers is not None:
                    for row in rows:
                        answers.keep(self.examples[row.ordinal], row)
                failed = sum([row.failure is not None for row in rows])
                advance(name, len(rows), failed)
        finally:
            await caller.close()
        if answers is not None:
            answers.warn_of_changes()
        return made

    def _answers_of(self, system: Any) -> SystemCache | None:
        """Look at a system before it is called: it may change as it works."""
        if self.cache is None:
            return None
        return SystemCache(self.cache, system, self.settings, self.plans, self.content)


class _ListSource:
    """Examples held in memory, of which some rows are known."""

    def __init__(self, examples: list[SpooledExample], known: Mapping[int, Any]) -> None:
        self._examples = examples
        self._known = known

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        return self._examples[start : start + limit]

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        if not self._known:
            return set()
        return {(ordinal, 0) for ordinal in range(start, stop) if ordinal in self._known}


def finish(job: Job, metrics: Sequence[Metric], config: Config) -> EvalResult:
    """Run a job and summarise it; `config` records how its rows, or a part of them, were made."""
    started = time.time()
    judges = run_in_thread(check_local_judges(job.plans, job.examples))
    rows, timing = run_in_thread(job.run())
    mark_rows(rows, judges)
    findings = explain(by_judge(judges, iter(rows)), RunSpec((), ()), None)
    times = {"started_at": started, "ended_at": time.time()}
    name_score(rows)
    names = list(job.systems)
    scores = {name: score for plan in job.plans.values() for name, score in plan.scores.items()}

    def summarized(part: Sequence[EvalRow]) -> Summarized:
        present = {row.system for row in part}
        systems = names if part is rows else [name for name in names if name in present]
        summarizer = Summarizer(metrics, systems, scores)
        summarizer.extend(part)
        return summarizer.result()

    def described(part: Sequence[EvalRow], found: Summarized) -> dict[str, Any]:
        return {
            **config(part),
            "metrics": [metric.name for metric in metrics],
            "max_workers": job.max_workers,
            "timed_rows": job.timed_rows,
            **times,
            "headlines": {name: [*used] for name, used in found.headlines.items()},
            "metric_failures": found.failures,
            **(described_judges(judges, findings) if judges else {}),
        }

    whole = summarized(rows)
    return EvalResult(
        rows=rows,
        summary=whole.summary,
        timing=timing,
        config=described(rows, whole),
        summarize=lambda part: summarized(part).summary,
        describe=lambda part: described(part, summarized(part)),
        comparer=partial(compare_two, scores=scores),
    )


def name_score(rows: Sequence[EvalRow]) -> None:
    """Name the score that counts where nothing says it: the first that the first scored row has."""
    unnamed = [row for row in rows if not row.primary_score]
    first = min((row for row in unnamed if row.scores), key=lambda row: row.ordinal, default=None)
    if first is not None:
        for row in unnamed:
            row.primary_score = next(iter(first.scores))


def tokenizer_name(tokenizer: str | Tokenizer | None) -> str:
    """Name a tokenizer for the record."""
    return tokenizer if isinstance(tokenizer, str) else str(tokenizer or "cl100k_base")


def run_in_thread(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run on an event loop in a new thread, so that it works in notebooks, which have a loop."""
    outcome: list[_Result] = []
    errors: list[BaseException] = []
    started = threading.Event()
    handles: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[_Result]]] = []

    async def main() -> None:
        task = asyncio.ensure_future(work)
        handles.append((asyncio.get_running_loop(), task))
        started.set()
        outcome.append(await task)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            errors.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=run, name="cbench-evaluate", daemon=True)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        started.wait()
        for loop, task in handles:
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if errors:
        raise errors[0]
    return outcome[0]
