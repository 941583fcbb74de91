"""`evaluate()`: the synchronous door, for systems that are Python objects."""

import asyncio
import platform
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from cbench_server.cache import RowCache, component_identity
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS
from cbench_server.digests import canonical_digest
from cbench_server.errors import InvalidSpec, Unencodable
from cbench_server.events import RowScored
from cbench_server.metrics.summarize import summarize
from cbench_server.plan import DatasetPlan, Plan
from cbench_server.progress import open_progress
from cbench_server.results import EvalResult, EvalRow
from cbench_server.runner import Runner
from cbench_server.runstore import SpooledExample
from cbench_server.scoring import Scoring
from cbench_server.spooling import prepare
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.tokens import Tokenizer, get_tokenizer
from cbench_server.types import Evaluator, Example, Metric, System
from cbench_server.version import __version__
from cbench_server.workers import WorkerPool

_Result = TypeVar("_Result")


def evaluate(
    systems: Sequence[System],
    dataset: Iterable[Example],
    evaluators: Sequence[Evaluator],
    metrics: Sequence[Metric] | None = None,
    max_examples: int | None = None,
    progress: bool = True,
    text_fields: Sequence[str] | None = None,
    max_workers: int | None = None,
    cache_dir: str | None = None,
    *,
    tokenizer: str | Tokenizer | None = None,
    blind: bool = False,
    timeout: float = 3600.0,
) -> EvalResult:
    """Run every system on every example and score what comes back.

    Systems run one after another, each with `max_workers` calls at once. A
    system that raises gives a row with a `failure`, and the run goes on.
    `blind` withholds reference fields such as `answer` from the systems;
    `cache_dir` keeps rows, so that a second call makes only what is missing.
    """
    names = [system.name for system in systems]
    if len(set(names)) != len(names):
        raise InvalidSpec(f"systems must have different names; got {', '.join(names)}")
    if max_workers is not None and max_workers < 1:
        raise InvalidSpec(f"max_workers must be at least 1, not {max_workers}")
    job = _Job(
        systems=systems,
        examples=_load(dataset, max_examples, get_tokenizer(tokenizer), text_fields),
        evaluators=evaluators,
        tokenizer=get_tokenizer(tokenizer),
        text_fields=frozenset(text_fields) if text_fields is not None else None,
        max_workers=max_workers or 1,
        cache=RowCache(cache_dir) if cache_dir else None,
        blind=blind,
        timeout=timeout,
        progress=progress,
        settings=repr((tokenizer, text_fields, blind)),
    )
    started = time.time()
    rows, timing = _run_in_thread(job.run())
    chosen = list(metrics or [])

    def summarize_part(part: Sequence[EvalRow]) -> dict[str, dict[str, float | None]]:
        present = [name for name in names if any(row.system == name for row in part)]
        return summarize(part, chosen, present)

    return EvalResult(
        rows=rows,
        summary=summarize(rows, chosen, names),
        timing=timing,
        config={
            "systems": names,
            "evaluators": [evaluator.name for evaluator in evaluators],
            "metrics": [metric.name for metric in chosen],
            "num_examples": len(job.examples),
            "max_workers": max_workers or 1,
            "tokenizer": tokenizer
            if isinstance(tokenizer, str)
            else str(tokenizer or "cl100k_base"),
            "text_fields": list(text_fields) if text_fields is not None else None,
            "blind": blind,
            "system_versions": {
                system.name: str(getattr(system, "version", "")) for system in systems
            },
            "evaluator_versions": {
                evaluator.name: str(getattr(evaluator, "version", "")) for evaluator in evaluators
            },
            "cbench_version": __version__,
            "python_version": platform.python_version(),
            "started_at": started,
        },
        summarize=summarize_part,
    )


def _load(
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


@dataclass(frozen=True)
class _Job:
    """One call of `evaluate()`, resolved."""

    systems: Sequence[System]
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

    async def run(self) -> tuple[list[EvalRow], dict[str, float]]:
        """Make the rows of every system, in order."""
        rows: list[EvalRow] = []
        timing: dict[str, float] = {}
        workers = WorkerPool()
        display = open_progress(self.progress, {s.name: len(self.examples) for s in self.systems})
        try:
            with ThreadPoolExecutor(self.max_workers) as executor, display:
                scoring = Scoring(workers)
                for system in self.systems:
                    started = time.monotonic()
                    made = await self._run_system(system, scoring, executor, display.advance)
                    timing[system.name] = time.monotonic() - started
                    rows.extend(sorted(made, key=lambda row: row.ordinal))
        finally:
            await workers.close()
        return rows, timing

    async def _run_system(
        self,
        system: System,
        scoring: Scoring,
        executor: ThreadPoolExecutor,
        advance: Callable[[str, int, int], None],
    ) -> list[EvalRow]:
        keys = self._keys(system)
        known = self._cached(keys)
        advance(system.name, len(known), 0)
        plan = Plan(
            run_id="evaluate",
            callers=[InProcessCaller(system, executor=executor)],
            datasets={entry.dataset: self._dataset_plan() for entry in self.examples},
            tokenizer=self.tokenizer,
            text_fields=self.text_fields,
            row_timeout=self.timeout,
            max_concurrency=self.max_workers,
        )
        made = list(known.values())
        async for batch in Runner(plan, _ListSource(self.examples, known), scoring).events():
            for event in batch:
                if isinstance(event, RowScored):
                    made.append(event.row)
                    self._remember(keys.get(event.row.ordinal), event.row)
                    advance(system.name, 1, int(event.row.failure is not None))
        return made

    def _dataset_plan(self) -> DatasetPlan:
        withheld = frozenset(DEFAULT_REFERENCE_FIELDS) if self.blind else frozenset[str]()
        return DatasetPlan(self.evaluators, withheld, primary_score="f1")

    def _keys(self, system: System) -> dict[int, str]:
        """Name each row to be made by what it depends on, before the system is called.

        Systems change as they work; what counts is what they were.
        """
        identities = [component_identity(part) for part in (system, *self.evaluators)]
        if self.cache is None or None in identities:
            return {}
        return {
            entry.ordinal: "\n".join([entry.digest, self.settings, *map(str, identities)])
            for entry in self.examples
            if entry.digest
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
        return {(ordinal, 0) for ordinal in range(start, stop) if ordinal in self._known}


def _run_in_thread(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run on an event loop in a thread of its own, so that notebooks, which have one, work."""
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
