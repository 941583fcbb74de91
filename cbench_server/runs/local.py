"""Local evaluations, without a store: examples in memory, one system at a time."""

import asyncio
import platform
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

from cbench_server.comparison import compare_two
from cbench_server.contract import info_of
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS
from cbench_server.errors import InvalidSpec, Unencodable
from cbench_server.events import RowScored
from cbench_server.metrics.summary import Summarized, Summarizer
from cbench_server.results import EvalResult, EvalRow
from cbench_server.runs.digests import canonical_digest
from cbench_server.runs.pipeline import Pipeline
from cbench_server.runs.plan import DatasetPlan, Plan
from cbench_server.runs.progress import open_progress
from cbench_server.runs.row_cache import RowCache, component_identity
from cbench_server.runs.spool import prepare
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.turns import TIMED_ROWS
from cbench_server.scoring.placement import Scoring
from cbench_server.scoring.workers import WorkerPool
from cbench_server.systems.caller import Caller
from cbench_server.tokens import Tokenizer
from cbench_server.types import Evaluator, Example, Metric
from cbench_server.version import __version__

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Job:
    """One call of `evaluate()` or `evaluate_memory()`, resolved."""

    systems: Mapping[str, Any]
    """By name."""
    connect: Callable[[Any, int], Caller]
    """Makes what calls a system, with so many threads."""
    examples: list[SpooledExample]
    evaluators: Sequence[Evaluator]
    tokenizer: Tokenizer
    text_fields: frozenset[str] | None
    max_workers: int
    cache: RowCache | None
    blind: bool
    timeout: float
    progress: bool
    settings: str
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
        keys = self._keys(system)
        known = self._cached(keys)
        advance(name, len(known), 0)
        caller = self.connect(system, self.max_workers)
        plan = Plan(
            run_id="evaluate",
            callers=[caller],
            datasets={entry.dataset: self._dataset_plan() for entry in self.examples},
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
                if keys:
                    for row in rows:
                        self._remember(keys.get(row.ordinal), row)
                failed = sum([row.failure is not None for row in rows])
                advance(name, len(rows), failed)
        finally:
            await caller.close()
        return made

    def _dataset_plan(self) -> DatasetPlan:
        withheld = frozenset(DEFAULT_REFERENCE_FIELDS) if self.blind else frozenset[str]()
        return DatasetPlan(self.evaluators, withheld, primary_score="f1")

    def _keys(self, system: Any) -> dict[int, str]:
        """Name each row to be made by what it depends on, before the system is called.

        Systems change as they work; what counts is what they were.
        """
        identities = [component_identity(part) for part in (system, *self.evaluators)]
        if self.cache is None or None in identities:
            return {}
        return {
            entry.ordinal: "\n".join([content, self.settings, *map(str, identities)])
            for entry in self.examples
            if (content := self.content(entry))
        }

    def _cached(self, keys: Mapping[int, str]) -> dict[int, EvalRow]:
        if self.cache is None:
            return {}
        known: dict[int, EvalRow] = {}
        for entry in self.examples:
            key = keys.get(entry.ordinal)
            row = self.cache.get(key) if key else None
            if row is not None:
                known[entry.ordinal] = replace(
                    row, ordinal=entry.ordinal, index=entry.index, reused=True
                )
        return known

    def _remember(self, key: str | None, row: EvalRow) -> None:
        if self.cache is None or key is None or row.failure is not None or row.evaluator_failures:
            return
        self.cache.put(key, row)


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


def load(
    dataset: Iterable[Example],
    max_examples: int | None,
    tokenizer: Tokenizer,
    text_fields: Sequence[str] | None,
) -> list[SpooledExample]:
    """Materialise the dataset, each example under the tag it carries."""
    fields = frozenset(text_fields) if text_fields is not None else None
    prepared: list[SpooledExample] = []
    by_tag: dict[str, list[tuple[int, Example]]] = {}
    for position, example in enumerate(dataset):
        if max_examples is not None and position >= max_examples:
            break
        by_tag.setdefault(str(example.get("dataset", "")), []).append((position, example))
    for tag, entries in by_tag.items():
        # An example without an id gets its position in the whole dataset.
        given = ({"id": position, **example} for position, example in entries)
        spooled = prepare(
            given,
            label=tag,
            first_ordinal=0,
            tokenizer=tokenizer,
            text_fields=fields,
            digest=_digest_if_any,
        )
        for (position, example), entry in zip(entries, spooled, strict=True):
            whole = entry.example if "dataset" in example else _without(entry.example, "dataset")
            tokens = dict(entry.field_tokens)
            if "dataset" not in example:
                tokens.pop("dataset", None)
            if "id" not in example:
                tokens.pop("id", None)
            prepared.append(replace(entry, ordinal=position, example=whole, field_tokens=tokens))
    return sorted(prepared, key=lambda entry: entry.ordinal)


def _digest_if_any(example: Example) -> str:
    """Digest an example; one that holds objects has none, and is never cached."""
    try:
        return canonical_digest(example)
    except Unencodable:
        return ""


def _without(example: Example, name: str) -> Example:
    return {key: value for key, value in example.items() if key != name}


def check_arguments(names: Sequence[str], max_workers: int | None, timed_rows: int) -> None:
    """Refuse systems of one name, and numbers that cannot be."""
    if len(set(names)) != len(names):
        raise InvalidSpec(f"systems must have different names; got {', '.join(names)}")
    if max_workers is not None and max_workers < 1:
        raise InvalidSpec(f"max_workers must be at least 1, not {max_workers}")
    if timed_rows < 0:
        raise InvalidSpec(f"timed_rows must be at least 0, not {timed_rows}")


def finish(job: Job, metrics: Sequence[Metric] | None, config: Mapping[str, Any]) -> EvalResult:
    """Run a job and summarise it; `config` is recorded with it."""
    started = time.time()
    rows, timing = run_in_thread(job.run())
    names, chosen = list(job.systems), list(metrics or [])

    scores = {
        score.name: score for evaluator in job.evaluators for score in info_of(evaluator).scores
    }

    def summarized(part: Sequence[EvalRow], systems: Sequence[str]) -> Summarized:
        summarizer = Summarizer(chosen, systems, scores)
        summarizer.extend(part)
        return summarizer.result()

    def summarize_part(part: Sequence[EvalRow]) -> dict[str, dict[str, float | None]]:
        present = [name for name in names if any(row.system == name for row in part)]
        return summarized(part, present).summary

    whole = summarized(rows, names)
    return EvalResult(
        rows=rows,
        summary=whole.summary,
        timing=timing,
        config={
            "systems": names,
            "evaluators": [evaluator.name for evaluator in job.evaluators],
            "metrics": [metric.name for metric in chosen],
            "max_workers": job.max_workers,
            "timed_rows": job.timed_rows,
            **config,
            "system_versions": {
                name: info_of(system).version for name, system in job.systems.items()
            },
            "evaluator_versions": {
                evaluator.name: info_of(evaluator).version for evaluator in job.evaluators
            },
            "cbench_version": __version__,
            "python_version": platform.python_version(),
            "started_at": started,
            "headlines": {name: [*used] for name, used in whole.headlines.items()},
            "metric_failures": whole.failures,
        },
        summarize=summarize_part,
        comparer=partial(compare_two, scores=scores),
    )


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
