"""Rescoring: a loop over the stored rows of a run, which become the rows of another.

Three things go on at once: the next page is read, a page is scored, and the page
before it is stored.

No system is called. The examples are shared with the parent, which may be
deleted all the same; with corrected references the new run gets its own.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from cbench_server.durable import failpoints
from cbench_server.errors import BadDataset, RunFailed, UnknownRun
from cbench_server.events import RowScored, StoredEvent
from cbench_server.limits import LONG_TEXT, TURN_S, text_size
from cbench_server.results import EvalRow, Failure
from cbench_server.runs.config import NO_REFERENCES
from cbench_server.runs.context_tokens import row_tells_context
from cbench_server.runs.digests import canonical_digest
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.recorded_rows import rescore, set_scores
from cbench_server.runs.rows import set_headline
from cbench_server.runs.served_models import served_models
from cbench_server.runs.store import RowPage, RowQuery, RunStore, SpooledExample
from cbench_server.scoring.placement import InlineScoring, Scoring
from cbench_server.spec import STOPPED_BY_BUDGET, EvaluatorRef, Run, RunNote, RunSpec, renewed
from cbench_server.systems.caller import own_size
from cbench_server.tokens import Tokenizer, count_fields_like
from cbench_server.types import Example

T = TypeVar("T")

_PAGE = 512
_SCORED_AT_ONCE = 32
# Rows scored by the event loop before others get their turn.
_BURST = 64
_OWN_FIELDS = ("id", "dataset")
_IDS_SHOWN = 10
UNMATCHED = "UNMATCHED_REFERENCES"


class References:
    """Fields that replace those of the originals with the same id."""

    def __init__(self, examples: Iterator[Example]) -> None:
        self._fields: dict[tuple[type, Any], Example] = {}
        self._matched: dict[tuple[type, Any], tuple[type, Any]] = {}
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

    @property
    def unmatched(self) -> list[Any]:
        """The ids that no example has."""
        return [key[1] for key in self._fields if key not in self._matched]

    def apply(self, example: Example) -> Example:
        """Return the example, corrected where there is something to correct.

        A table has no numbers, so its "7" corrects an example whose id is 7.
        """
        own = (type(example["id"]), example["id"])
        key = own if own in self._fields else (str, str(example["id"]))
        if key not in self._fields:
            return example
        if self._matched.setdefault(key, own) != own:
            raise BadDataset(
                f'the run has an example {example["id"]} and an example "{example["id"]}", so it '
                f"cannot be told which one the reference {key[1]!r} corrects. Give the references "
                "as JSON, where a number differs from a text."
            )
        return {**example, **self._fields[key]}


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
        self._inline: dict[str, InlineScoring | None] = {}
        self._permits = asyncio.Semaphore(max(_SCORED_AT_ONCE, scoring.at_once))
        self._is_draining = False
        self.timing: dict[str, float] = {}
        """Wall-clock seconds that each system's rows took."""

    def drain(self) -> None:
        """Stop making rows."""
        self._is_draining = True

    async def events(self) -> AsyncGenerator[list[StoredEvent], None]:
        """Yield the rows, in batches, until all are made. Raises RunFailed if some are gone."""
        references = await asyncio.to_thread(lambda: References(self._read_references()))
        try:
            await self._take_examples(references)
            failpoints.hit("rescore.examples")
            for system in self._run.systems:
                started = self._clock()
                async for events in _ahead(self._events(system, references)):
                    yield events
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

    async def _take_examples(self, references: References) -> None:
        start, is_complete = await self._store.spooled(self._run.run_id)
        if is_complete:
            return
        parent, run_id = self._run.parent_run_id, self._run.run_id
        if not len(references):
            if await self._store.share_examples(parent, run_id):
                return
            # The parent was stopped early, and may yet load more when it is resumed.
            while copied := await self._store.copy_examples(parent, run_id, start, _PAGE):
                if self._is_draining:
                    return
                start += copied
            await self._store.add_examples(run_id, [], complete=True)
            return
        # From the first one, though some may be copied: all must be seen to tell what matches.
        place = 0
        while page := await self._store.read_examples(parent, place, _PAGE):
            if self._is_draining:
                return
            corrected = await asyncio.to_thread(self._correct_all, page, references, start)
            place = page[-1].ordinal + 1
            if corrected:
                await self._store.add_examples(run_id, corrected)
        if not references.matched:
            raise BadDataset(
                f"none of the {len(references)} references has the id of an example of run "
                f'"{parent}". An id keeps its type: 1 and "1" differ, but for a table\'s.'
            )
        await self._note_unmatched(references)
        await self._store.add_examples(run_id, [], complete=True)

    async def _note_unmatched(self, references: References) -> None:
        """Put on record which references correct nothing."""
        unmatched = references.unmatched
        if not unmatched:
            return
        some = ", ".join(str(each) for each in unmatched[:_IDS_SHOWN])
        more = ", ..." if len(unmatched) > _IDS_SHOWN else ""
        text = (
            f"{len(unmatched):,} of {len(references):,} references correct nothing, for no "
            f"example has their id: {some}{more}"
        )
        notes = (await self._store.get_run(self._run.run_id)).notes
        update = {"notes": renewed(notes, [RunNote(UNMATCHED, text)])}
        await self._store.append(self._run.run_id, [], update=update)

    def _correct_all(
        self, page: list[SpooledExample], references: References, start: int
    ) -> list[SpooledExample]:
        """Return those from an ordinal on, ready for the store."""
        corrected = [self._corrected(spooled, references) for spooled in page]
        new = [each for each in corrected if each.ordinal >= start]
        self._store.pack_examples(new)
        return new

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

    async def _events(
        self, system: str, references: References
    ) -> AsyncGenerator[list[StoredEvent], None]:
        async for page in _ahead(self._pages(system)):
            if self._is_draining:
                return
            if page.rows:
                done = await self._done(system, page.rows)
                stored = zip(page.rows, page.originals or [], page.packed or [], strict=True)
                wanted = [each for each in stored if (each[0].ordinal, each[0].repeat) not in done]
                yield await self._rescored(wanted, references)

    async def _pages(self, system: str) -> AsyncGenerator[RowPage, None]:
        query = RowQuery(system=system, processed=True, original=True, packed=True, limit=_PAGE)
        token: str | None = None
        while True:
            page = await self._store.read_rows(self._run.parent_run_id, query, token)
            yield page
            token = page.next_token
            if token is None:
                return

    async def _done(self, system: str, rows: list[EvalRow]) -> set[tuple[int, int]]:
        """Return which rows are stored already; a run that was never interrupted has none."""
        if not self._run.completed_rows:
            return set()
        first, last = rows[0].ordinal, rows[-1].ordinal
        return await self._store.completed(self._run.run_id, system, first, last + 1)

    async def _rescored(
        self, stored: list[tuple[EvalRow, Example, bytes | None]], references: References
    ) -> list[StoredEvent]:
        """Score the rows: at once what may run on the event loop, the rest a few at a time."""
        slow = []
        events: list[StoredEvent] = []
        until = time.monotonic() + TURN_S
        for place, (row, original, packed) in enumerate(stored):
            row.queue_time, row.reused = 0.0, True
            example = references.apply(original) if len(references) else original
            if example is original and self._score_now(row, example):
                events.append(RowScored(row, packed))
            else:
                # What it has in common with the example is looked for again.
                events.append(RowScored(row))
                slow.append(self._score_slowly(row, example))
            if place % _BURST == _BURST - 1 or time.monotonic() > until:
                await asyncio.sleep(0)
                until = time.monotonic() + TURN_S
        await asyncio.gather(*slow)
        return events

    def _score_now(self, row: EvalRow, example: Example) -> bool:
        dataset = self._datasets[row.dataset]
        if row.processed is None:
            if text_size(example) > LONG_TEXT:
                return False
            set_headline(row, example, dataset)
            return True
        if row.dataset not in self._inline:
            self._inline[row.dataset] = self._scoring.inline(dataset.evaluators)
        inline = self._inline[row.dataset]
        if inline is None:
            return False
        if text_size(example) + own_size(row.processed, row.carried) > inline.limit:
            return False
        started = self._clock()
        is_told = row_tells_context(row, example)
        scored = inline.score(example, row.processed, tells_context=is_told)
        set_scores(row, example, scored, dataset, self._clock() - started)
        return True

    async def _score_slowly(self, row: EvalRow, example: Example) -> None:
        async with self._permits:
            await rescore(row, example, self._datasets[row.dataset], self._scoring, self._clock)


async def _ahead(items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield items, the next of which is made while one is worked on."""
    upcoming = asyncio.ensure_future(anext(items, None))
    try:
        while (item := await upcoming) is not None:
            upcoming = asyncio.ensure_future(anext(items, None))
            yield item
    finally:
        upcoming.cancel()
        await asyncio.wait([upcoming])
        await items.aclose()


def rescored_spec(spec: RunSpec, evaluators: Sequence[EvaluatorRef], **changes: Any) -> RunSpec:
    """Return what a run asks for that rescores another; without evaluators, the same ones."""
    spec = replace(spec, reuse=False, budget_usd=None, **changes)
    if not evaluators:
        return spec
    # The score that counted may not be among those that others give.
    return replace(spec, evaluators=tuple(evaluators), replace_evaluators=True, score_field="")


def kept_notes(parent: Run, references_upload: str) -> tuple[RunNote, ...]:
    """Return what was said of the parent and is as true of its outputs when they are rescored."""
    kept = {STOPPED_BY_BUDGET} | ({NO_REFERENCES, UNMATCHED} if not references_upload else set())
    return tuple(note for note in parent.notes if note.code in kept)


def describe_rescoring(
    parent: Run,
    spec: RunSpec,
    plans: Mapping[str, DatasetPlan],
    references_upload: str,
    now: float,
) -> dict[str, Any]:
    """Record what the parent did, and what is done otherwise."""
    datasets = [
        {**each, **plans[each["label"]].describe()} if each.get("label") in plans else each
        for each in parent.config.get("datasets", [])
    ]
    # Those of the parent are no longer true of what is rescored.
    gone = {
        "resumptions",
        "judges",
        "judging",
        "cost",
        *(("notices",) if references_upload else ()),
    }
    config = {name: value for name, value in parent.config.items() if name not in gone}
    rescoring = {"of": parent.run_id, "references_upload": references_upload, "time": now}
    # A parent that was itself rescored has examples that were corrected then.
    if earlier := parent.config.get("rescoring"):
        rescoring["earlier"] = earlier
    if models := served_models(spec.labels):
        config["local_models"] = models
    return {**config, "datasets": datasets, "rescoring": rescoring}
