"""The result of a local evaluation: its figures, and what is said of them, for all rows or some."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

from cbench_server.comparison import compare_two
from cbench_server.comparison.raters import twins_of, undisputed
from cbench_server.comparison.sentences import sentence
from cbench_server.comparison.tables import MARK
from cbench_server.metrics.suites import Suite, suites_from
from cbench_server.metrics.summary import Summarized, Summarizer
from cbench_server.models.tracing import Tracer, under
from cbench_server.results import EvalResult, EvalRow
from cbench_server.runs.conclusions import Conclusions, conclude
from cbench_server.runs.conduct import add_twice, compared_repeats, conduct_notes
from cbench_server.runs.finished import finished_examples, may_be_partial
from cbench_server.runs.judge_notes import Findings
from cbench_server.runs.judging import mark_rows
from cbench_server.runs.local import Done, Job, LocalWork
from cbench_server.runs.local_findings import explained, with_errata
from cbench_server.runs.local_money import local_cost
from cbench_server.runs.local_store import LocalStore
from cbench_server.runs.model_notes import model_notes
from cbench_server.runs.saturation import saturation_notes, session_count
from cbench_server.runs.suites import counted_suites
from cbench_server.runs.summary import checked, figure_notes
from cbench_server.runs.summary_notes import summary_notes
from cbench_server.spec import RunNote
from cbench_server.tokens import Tokenizer
from cbench_server.types import Metric

_Result = TypeVar("_Result")

Config = Callable[[Sequence[EvalRow]], dict[str, Any]]


def finish(
    job: Job, metrics: Sequence[Metric], config: Config, tracer: Tracer | None = None
) -> EvalResult:
    """Run a job and summarise it; `config` records how its rows, or a part of them, were made."""
    started = time.time()
    try:
        done = run_in_thread(_worked(job, tracer))
    finally:
        if tracer is not None:
            tracer.close()
    mark_rows(done.rows, done.judges)
    # Where a dataset's own evaluators score, and none of their scores counts, there is no headline.
    name_score([row for row in done.rows if not job.plans[row.dataset].own_scores])
    part_of = _Parts(job, done, metrics, config, started)
    whole = part_of(done.rows)
    return EvalResult(
        rows=done.rows,
        summary=whole.summary,
        timing=done.timing,
        config=whole.config,
        summarize=lambda rows: part_of(rows).summary,
        describe=lambda rows: part_of(rows).config,
        comparer=_Comparer(part_of, whole),
    )


async def _worked(job: Job, tracer: Tracer | None) -> Done:
    about: dict[str, str | int] = {"cbench.kind": job.spec.kind}
    # It is no run of a store, and its trace is like no other.
    with under(tracer.run(f"evaluate-{uuid4().hex}", about) if tracer else None):
        return await LocalWork(job).run()


class _Part:
    """Some rows of an evaluation, or all, with their figures."""

    def __init__(self, found: Summarized, config: dict[str, Any]) -> None:
        self.summary = found.summary
        self.config = config
        self.suites: list[Suite] = [
            suite
            for suite in suites_from(config.get("suites", ()))
            if any(values.get(suite.key) is not None for values in found.summary.values())
        ]


class _Comparer:
    """Compares two systems; a score whose judge did not pass its controls is marked."""

    def __init__(self, parts: "_Parts", whole: _Part) -> None:
        self._compare = partial(compare_two, scores=parts.scores, suites=whole.suites)
        self._judges = list(whole.config.get("judges") or ())
        failed = [judge for judge in self._judges if not judge.get("qualified")]
        self._marked = {score for judge in failed for score in judge.get("scores") or ()}

    def __call__(self, rows: Sequence[EvalRow], a: str, b: str, score: str | None) -> Any:
        pair = self._compare(rows, a, b, score)
        twins = [
            twin
            for twin in twins_of(pair.score, self._judges)
            if all(any(twin in row.scores for row in rows if row.system == name) for name in (a, b))
        ]
        others = [self._compare(rows, a, b, twin).difference.value or 0.0 for twin in twins]
        pair = undisputed(pair, others)
        if pair.score not in self._marked:
            return pair
        marked = replace(pair, score=pair.score + MARK)
        return replace(marked, sentence=sentence(marked))


class _Parts:
    """Makes the figures of rows. What is said of arms needs the rows of all systems."""

    def __init__(
        self, job: Job, done: Done, metrics: Sequence[Metric], config: Config, started: float
    ) -> None:
        self._job = job
        self._done = done
        self._metrics = metrics
        self._config = config
        self._times = {"started_at": started, "ended_at": time.time()}
        self._finished = _finished(done, job)
        self.scores = {
            name: score for plan in job.plans.values() for name, score in plan.scores.items()
        }

    def __call__(self, rows: Sequence[EvalRow]) -> _Part:
        done = self._done
        is_whole = rows is done.rows
        present = {row.system for row in rows}
        store = LocalStore(done.run, self._job.examples)
        store.add(rows)
        config = self._config(rows)
        config |= counted_suites(config)
        found = checked(self._summarized(rows, present, is_whole=is_whole), config)
        twice = {**done.twice, **run_in_thread(compared_repeats(store, store.run))}
        add_twice(found.summary, {name: twice[name] for name in twice if name in present})
        arms, recorded = Conclusions({}, ()), {}
        if present >= set(done.run.systems):
            # A stored run has its judges on record by then.
            judged = replace(
                store.run, config={**store.run.config, "judges": list(done.judges or ())}
            )
            arms = run_in_thread(conclude(store, judged, found.summary))
            recorded = {key: value for key, value in done.run.config.items() if key != "datasets"}
        findings = self._explained(rows, store, found, is_whole=is_whole)
        for name, values in findings.values.items():
            found.summary.setdefault(name, {}).update(values)
        spent, money_notes = done.spent, done.money_notes
        if not is_whole:
            spent, money_notes = local_cost(done.spent, rows), []
        notes = [
            *money_notes,
            *figure_notes(config, done.run.spec.group_by, found.summary),
            *model_notes(store.run, found.summary),
            *done.leaks,
            *findings.notes,
            *self._saturation(rows),
            *summary_notes(found, Counter(row.system for row in rows)),
            *self._conduct(found),
            *arms.notes,
        ]
        described = {
            **config,
            "systems": [name for name in done.run.systems if name in present],
            "metrics": [metric.name for metric in self._metrics],
            "max_workers": self._job.max_workers,
            "timed_rows": self._job.spec.timed_rows,
            "num_repeats": self._job.spec.repeats,
            **self._times,
            "headlines": {name: [*used] for name, used in found.headlines.items()},
            "metric_failures": found.failures,
            **({"judges": list(done.judges)} if done.judges else {}),
            **({"judging": findings.facts} if findings.facts else {}),
            **recorded,
            **arms.config,
            **spent,
            **({"failure": asdict(done.run.failure)} if is_whole and done.run.failure else {}),
            "notes": [asdict(note) for note in notes],
        }
        return _Part(found, described)

    def _explained(
        self, rows: Sequence[EvalRow], store: LocalStore, found: Summarized, *, is_whole: bool
    ) -> Findings:
        """Say what is known of judges; of a part no mended row is judged again."""
        job, done = self._job, self._done
        ranked = [row for row in rows if row.system in done.run.ranked]
        findings = explained(done.judges, ranked, done.run, job.corrections)
        if is_whole and job.corrections.errata is not None:
            make = partial(Summarizer, self._metrics, done.run.systems, self.scores)
            errata = job.corrections.errata
            run_in_thread(with_errata(findings, store, found.summary, errata, job.plans, make))
        return findings

    def _summarized(
        self, rows: Sequence[EvalRow], present: set[str], *, is_whole: bool
    ) -> Summarized:
        run = self._done.run
        systems = [name for name in run.systems if is_whole or name in present]
        summarizer = Summarizer(self._metrics, systems, self.scores)
        finished = self._finished
        summarizer.extend([row for row in rows if finished is None or row.ordinal in finished])
        return summarizer.result(run.unranked)

    def _saturation(self, rows: Sequence[EvalRow]) -> list[RunNote]:
        run = self._done.run
        if run.spec.kind != "memory":
            return []
        sessions = {
            str(entry.example.get("group")): count
            for entry in self._job.examples
            if (count := session_count(entry.example))
        }
        ranked = (row for row in rows if row.system in run.ranked)
        return saturation_notes(ranked, run.spec, run.systems, sessions)

    def _conduct(self, found: Summarized) -> list[RunNote]:
        run = self._done.run
        tested = {name: values for name, values in found.summary.items() if not run.is_added(name)}
        return conduct_notes(tested, run)


def _finished(done: Done, job: Job) -> set[int] | None:
    """Return the examples that all systems have, if a budget may have ended the run before."""
    if not may_be_partial(done.run):
        return None
    store = LocalStore(done.run, job.examples)
    store.add(done.rows)
    return run_in_thread(finished_examples(store, done.run))[0]


def name_score(rows: Sequence[EvalRow]) -> None:
    """Name the score that counts where nothing says it: the first that the first scored row has."""
    unnamed = [row for row in rows if not row.primary_score]
    first = min((row for row in unnamed if row.scores), key=lambda row: row.ordinal, default=None)
    if first is not None:
        for row in unnamed:
            row.primary_score = next(iter(first.scores))
            # As long as it had no name, no example could have it.
            row.not_applicable = tuple(name for name in row.not_applicable if name)


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
