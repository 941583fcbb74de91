"""Rescoring: a loop over the stored rows of a run, which become the rows of another.

No system is called. The examples are copied, with corrected references, so that
the new run stands by itself.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from cbench_server.errors import BadDataset, RunFailed, UnknownRun
from cbench_server.events import RowScored, StoredEvent
from cbench_server.results import EvalRow, Failure
from cbench_server.runs.digests import canonical_digest
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.rows import rescore
from cbench_server.runs.store import RunStore, SpooledExample
from cbench_server.scoring.placement import Scoring
from cbench_server.spec import Run
from cbench_server.tokens import Tokenizer, count_fields_like
from cbench_server.types import Example

_PAGE = 256
_PAGE_BYTES = 8_000_000
_SCORED_AT_ONCE = 32
_OWN_FIELDS = ("id", "dataset")


class References:
    """Fields that replace those of the originals with the same id."""

    def __init__(self, examples: Iterator[Example]) -> None:
        self._fields: dict[tuple[type, Any], Example] = {}
        self._matched: set[tuple[type, Any]] = set()
        for example in examples:
            if "id" not in example:
                raise BadDataset("a reference has no id, so it corrects no example. Give it one.")
            fields = {name: value for name, value in example.items() if name not in _OWN_FIELDS}
            self._fields[type(example["id"]), example["id"]] = fields

    def __len__(self) -> int:
        return len(self._fields)

    @property
    def matched(self) -> int:
        """How many have corrected an example."""
        return len(self._matched)

    def apply(self, example: Example) -> Example:
        """Return the example, corrected where there is something to correct."""
        key = (type(example["id"]), example["id"])
        fields = self._fields.get(key)
        if fields is None:
            return example
        self._matched.add(key)
        return {**example, **fields}


class Rescoring:
    """Makes the rows of a rescored run from those of its parent."""

    def __init__(
        self,
        store: RunStore,
        run: Run,
        datasets: Mapping[str, DatasetPlan],
        scoring: Scoring,
        tokenizer: Tokenizer,
        read_references: Callable[[], Iterator[Example]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._run = run
        self._datasets = datasets
        self._scoring = scoring
        self._tokenizer = tokenizer
        self._read_references = read_references
        self._clock = clock
        self._permits = asyncio.Semaphore(_SCORED_AT_ONCE)
        self._is_draining = False
        self.timing: dict[str, float] = {}
        """Wall-clock seconds that each system's rows took."""

    def drain(self) -> None:
        """Make no more rows."""
        self._is_draining = True

    async def events(self) -> AsyncIterator[list[StoredEvent]]:
        """Yield the rows, in batches, until all are made. Raises RunFailed if some are gone."""
        references = await asyncio.to_thread(lambda: References(self._read_references()))
        try:
            await self._copy_examples(references)
            for system in self._run.systems:
                started = self._clock()
                async for rows in self._rows(system, references):
                    yield [RowScored(row) for row in rows]
                if self._is_draining:
                    return
                self.timing[system] = self._clock() - started
        except UnknownRun as error:
            raise RunFailed(
                Failure(
                    "daemon",
                    "ROW_GONE",
                    f'run "{self._run.parent_run_id}", whose answers are rescored, is gone. '
                    "Was it deleted?",
                )
            ) from error

    # Examples.

    async def _copy_examples(self, references: References) -> None:
        start, is_complete = await self._store.spooled(self._run.run_id)
        if is_complete:
            return
        # From the first one, though some may be copied: all must be seen to tell what matches.
        place = 0
        while page := await self._store.read_examples(self._run.parent_run_id, place, _PAGE):
            if self._is_draining:
                return
            corrected = await asyncio.to_thread(self._correct_all, page, references)
            place = page[-1].ordinal + 1
            if place > start:
                await self._store.add_examples(
                    self._run.run_id, [each for each in corrected if each.ordinal >= start]
                )
                start = place
        if len(references) and not references.matched:
            raise BadDataset(
                f"none of the {len(references)} references has the id of an example of run "
                f'"{self._run.parent_run_id}". An id keeps its type: 1 and "1" differ.'
            )
        await self._store.add_examples(self._run.run_id, [], complete=True)

    def _correct_all(
        self, page: list[SpooledExample], references: References
    ) -> list[SpooledExample]:
        return [self._corrected(spooled, references) for spooled in page]

    def _corrected(self, spooled: SpooledExample, references: References) -> SpooledExample:
        example = references.apply(spooled.example)
        if example is spooled.example:
            return spooled
        fields = frozenset(self._run.spec.text_fields) or None
        counts = count_fields_like(
            example, spooled.example, spooled.field_tokens, self._tokenizer, fields
        )
        digest = canonical_digest(example)
        return replace(spooled, example=example, digest=digest, field_tokens=counts, size=0)

    # Rows.

    async def _rows(self, system: str, references: References) -> AsyncIterator[list[EvalRow]]:
        token: str | None = None
        while not self._is_draining:
            page = await self._store.read_rows(
                self._run.parent_run_id,
                token=token,
                limit=_PAGE,
                max_bytes=_PAGE_BYTES,
                system=system,
                processed=True,
                original=True,
            )
            if page.rows:
                first, last = page.rows[0].ordinal, page.rows[-1].ordinal
                done = await self._store.completed(self._run.run_id, system, first, last + 1)
                pairs = [
                    (row, references.apply(original))
                    for row, original in zip(page.rows, page.originals or [], strict=True)
                    if (row.ordinal, row.repeat) not in done
                ]
                if rows := await self._rescored(pairs):
                    yield rows
            token = page.next_token
            if token is None:
                return

    async def _rescored(self, pairs: list[tuple[EvalRow, Example]]) -> list[EvalRow]:
        datasets = {row.dataset for row, _ in pairs}
        if all(self._scoring.inline(self._datasets[name].evaluators) for name in datasets):
            return [await self._one(row, original) for row, original in pairs]
        return list(await asyncio.gather(*(self._bounded(*pair) for pair in pairs)))

    async def _bounded(self, row: EvalRow, original: Example) -> EvalRow:
        async with self._permits:
            return await self._one(row, original)

    async def _one(self, row: EvalRow, original: Example) -> EvalRow:
        row.queue_time, row.reused = 0.0, True
        dataset = self._datasets[row.dataset]
        return await rescore(row, original, dataset, self._scoring, self._clock)


def describe_rescoring(
    parent: Run, plans: Mapping[str, DatasetPlan], references_upload: str, now: float
) -> dict[str, Any]:
    """Record what the parent did, and what is done otherwise."""
    datasets = [
        {**each, **plans[each["label"]].describe()} if each.get("label") in plans else each
        for each in parent.config.get("datasets", [])
    ]
    config = {name: value for name, value in parent.config.items() if name != "resumptions"}
    rescoring = {"of": parent.run_id, "references_upload": references_upload, "time": now}
    # A parent that was itself rescored has examples that were corrected then.
    if earlier := parent.config.get("rescoring"):
        rescoring["earlier"] = earlier
    return {**config, "datasets": datasets, "rescoring": rescoring}
