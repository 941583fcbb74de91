"""Findings of a local evaluation: what people and errata say of it, beside its judges."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from cbench_server.datasets.readers.files import iterate_file
from cbench_server.errors import InvalidSpec
from cbench_server.metrics.summary import Summarizer
from cbench_server.results import EvalRow, Summary
from cbench_server.runs.errata import Errata, texts_in
from cbench_server.runs.errata_scores import add_errata
from cbench_server.runs.judge_notes import Findings, explain
from cbench_server.runs.judging import Record, judges_of
from cbench_server.runs.labels import Labels
from cbench_server.runs.local_config import LocalRecord
from cbench_server.runs.local_data import Source, load
from cbench_server.runs.local_store import LocalStore
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.verdicts import by_judge
from cbench_server.scoring.placement import Scoring
from cbench_server.scoring.workers import WorkerPool
from cbench_server.spec import Run
from cbench_server.types import Example

Lines = str | PathLike[str] | Iterable[Example]
"""A file, or what its lines hold."""


@dataclass(frozen=True)
class Corrections:
    """Labels of people, and known mistakes of the data."""

    labels: Labels | None = None
    errata: Errata | None = None

    def check(
        self,
        plans: Mapping[str, DatasetPlan],
        systems: Iterable[str],
        examples: Sequence[SpooledExample],
        sources: Sequence[Source],
        record: LocalRecord,
    ) -> None:
        """Refuse labels and errata that are about nothing, before anything is called.

        Errata may be of examples that were left out.
        """
        if self.labels is not None:
            if not any(judges_of(plan.evaluators) for plan in plans.values()):
                raise InvalidSpec(
                    "labels are set beside the verdicts of a judge, and none is among the "
                    "evaluators. Give one, such as LLMJudge(URL)."
                )
            named = [(entry.dataset, entry.example["id"]) for entry in examples]
            self.labels.check_ids(named, systems)
        if self.errata is not None:
            ids: dict[str, list[object]] = {label: [] for label in plans}
            for entry in (*examples, *_read_again(sources)):
                ids[entry.dataset].append(entry.example["id"])
            digests = {str(each["label"]): frozenset(texts_in(each)) for each in record.datasets}
            self.errata.check(ids, digests)


def read_corrections(labels: Lines | None, errata: Lines | None) -> Corrections:
    """Read what was given."""
    return Corrections(
        None if labels is None else Labels(_lines(labels)),
        None if errata is None else Errata(_lines(errata)),
    )


def _lines(given: Lines) -> Iterable[Example]:
    return iterate_file(Path(given)) if isinstance(given, str | PathLike) else given


def _read_again(sources: Sequence[Source]) -> list[SpooledExample]:
    return load([each for each in sources if each.loaded], None, lambda text: 0, ())


def explained(
    judges: Sequence[Record], rows: Sequence[EvalRow], run: Run, corrections: Corrections
) -> Findings:
    """Say what a reader has to know of judges, and of labels, which may be about other rows."""
    return explain(by_judge(judges, iter(rows)), run.spec, corrections.labels)


async def with_errata(
    found: Findings,
    store: LocalStore,
    summary: Summary,
    errata: Errata,
    plans: Mapping[str, DatasetPlan],
    new_summarizer: Callable[[], Summarizer],
) -> None:
    """Add what the scores are with errata."""
    workers = WorkerPool()
    run = replace(store.run, summary=summary)
    try:
        await add_errata(
            found,
            store,
            run,
            errata,
            plans,
            Scoring(workers),
            new_summarizer(),
            time.monotonic,
        )
    finally:
        await workers.close()
