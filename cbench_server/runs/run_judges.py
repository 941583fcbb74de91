"""The judges of one stored run: tested before its first row, explained after its last."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from cbench_server.events import RowScored, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.runs.connections import Connections
from cbench_server.runs.errata import Errata, texts_in
from cbench_server.runs.errata_scores import add_errata, rows_with_originals
from cbench_server.runs.judge_notes import Findings, explain
from cbench_server.runs.judging import (
    MOST_EXAMPLES,
    Record,
    admit,
    check_judges,
    judges_of,
    mark_rows,
)
from cbench_server.runs.labels import Labels
from cbench_server.runs.leaks import leaks_in
from cbench_server.runs.patience import Read
from cbench_server.runs.resolved_dataset import ResolvedDataset
from cbench_server.runs.saturation import saturation_notes, session_count
from cbench_server.runs.summary import new_summarizer
from cbench_server.runs.verdicts import by_judge
from cbench_server.spec import Run, RunNote
from cbench_server.types import Example

if TYPE_CHECKING:
    from cbench_server.runs.services import Services


class RunJudges:
    """Looks after judges, labels and errata on behalf of a live run."""

    def __init__(self, services: "Services", read: Read) -> None:
        """`read` waits for a dataset that is away."""
        self._services = services
        self._read = read
        self._store = services.store
        self._records: list[Record] = []

    def announced(self, run: Run, opened: Connections) -> str:
        """Say what a run does before its first row, which takes minutes with a slow model."""
        has_judges = any(judges_of(plan.evaluators) for plan in opened.plans.values())
        is_known = run.completed_rows and run.config.get("judges") is not None
        return "judges are asked about controls first" if has_judges and not is_known else ""

    async def admit(self, run: Run, opened: Connections) -> Run:
        """Test what can be wrong before anything is spent on systems; return the run with that.

        A resumed run had its judges tested. Raises RunFailed if none qualifies.
        """
        if run.spec.labels_upload:
            # Read now, so that a label of nothing is not found at the end.
            labels = await asyncio.to_thread(self._labels, run)
            labels.check_ids(await self._ids(run, opened), run.systems)
        if run.spec.errata_upload and not run.parent_run_id:
            await self._check_errata(run, opened)
        if not any(judges_of(plan.evaluators) for plan in opened.plans.values()):
            return run
        known = run.config.get("judges") if run.completed_rows else None
        leaks = tuple(run.notes)
        if known is None:
            is_memory = run.spec.kind == "memory"

            async def read(label: str) -> list[Example]:
                nonlocal leaks
                examples = await self._first_examples(run, opened, label)
                withheld = opened.plans[label].reference_fields
                leaks += tuple(
                    RunNote("LEAK", text, dataset=label)
                    for text in leaks_in(examples, withheld, is_memory=is_memory)
                )
                return examples

            checks = self._services.checks
            known = await check_judges(opened.plans, read, run.spec.seed, checks)
        self._records = admit(known, opened.plans, run.spec)
        run = replace(run, config={**run.config, "judges": self._records}, notes=leaks)
        update = {"config": run.config, "notes": run.notes}
        await self._store.append(run.run_id, [], update=update)
        return run

    async def _first_examples(self, run: Run, opened: Connections, label: str) -> list[Example]:
        if run.parent_run_id:
            spooled = await self._store.read_examples(run.parent_run_id, 0, MOST_EXAMPLES)
            return [each.example for each in spooled if each.dataset == label]
        [dataset] = [each for each in opened.datasets if each.ref.label == label]

        def read() -> list[Example]:
            examples = dataset.open(0, lambda text: 0, frozenset())
            return [each.example for each in islice(examples, MOST_EXAMPLES)]

        return await self._read(label, read)

    async def _ids(self, run: Run, opened: Connections) -> list[tuple[str, object]]:
        """Return the dataset and id of all examples that the run will have."""
        found: list[tuple[str, object]] = []
        if not run.parent_run_id:
            for dataset in opened.datasets:
                label = dataset.ref.label
                ids = await self._read(label, partial(_ids_of, dataset))
                found += [(label, each) for each in ids]
            return found
        while page := await self._store.read_examples(run.parent_run_id, len(found), MOST_EXAMPLES):
            found += [(each.dataset, each.example["id"]) for each in page]
        return found

    def _labels(self, run: Run) -> Labels:
        return Labels(self._services.uploads.iterate(run.spec.labels_upload))

    def _errata(self, run: Run) -> Errata:
        return Errata(self._services.uploads.iterate(run.spec.errata_upload))

    async def _check_errata(self, run: Run, opened: Connections) -> None:
        ids = {
            dataset.ref.label: await self._read(dataset.ref.label, partial(_all_ids, dataset))
            for dataset in opened.datasets
        }
        described = {
            str(each.get("label")): frozenset(texts_in(each))
            for each in run.config.get("datasets", [])
        }
        await asyncio.to_thread(lambda: self._errata(run).check(ids, described))

    def mark(self, batch: Sequence[StoredEvent]) -> None:
        """Put on the rows of a batch what a reader must know of their judges."""
        if self._records:
            mark_rows([each.row for each in batch if isinstance(each, RowScored)], self._records)

    async def explain(self, run: Run, opened: Connections | None) -> Findings:
        """Say what a reader has to know of judges, labels and errata."""
        found = Findings()
        if not run.completed_rows:
            return found
        judges = run.config.get("judges")
        rows: list[EvalRow] = []
        sessions: dict[str, int] = {}
        if judges or run.spec.kind == "memory":
            for system in run.ranked:
                async for row, original in rows_with_originals(self._store, run.run_id, system):
                    rows.append(row)
                    if count := session_count(original):
                        sessions[str(original.get("group"))] = count
        if judges:
            verdicts = by_judge(judges, iter(rows))
            labels = self._labels(run) if run.spec.labels_upload else None
            if labels is not None:
                labels.check(each.key for judge in verdicts for each in judge.all)
            found = explain(verdicts, run.spec, labels)
        if run.spec.kind == "memory":
            found.notes += saturation_notes(rows, run.spec, run.systems, sessions)
        if run.spec.errata_upload and opened is not None and opened.plans:
            services = self._services
            await add_errata(
                found,
                self._store,
                run,
                self._errata(run),
                opened.plans,
                services.scoring,
                new_summarizer(run, services.registry),
                services.clock,
            )
        return found


def _all_ids(dataset: ResolvedDataset) -> list[object]:
    """Return the ids of all examples, also of those that the run leaves out."""
    whole = replace(dataset, ref=replace(dataset.ref, max_examples=None, where={}))
    return _ids_of(replace(whole, question_types=()))


def _ids_of(dataset: ResolvedDataset) -> list[object]:
    return [each.example["id"] for each in dataset.open(0, lambda text: 0, frozenset())]
