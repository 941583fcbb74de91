"""A run scored anew: the parent's examples, with corrected references, and the parent's answers."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.digests import canonical_digest
from cbench_server.errors import BadDataset, RunFailed
from cbench_server.plan import DatasetPlan
from cbench_server.results import Failure
from cbench_server.runstore import RunStore, SpooledExample
from cbench_server.spec import Run
from cbench_server.spooling import Spool
from cbench_server.systems.caller import Reply, SystemDescription
from cbench_server.tokens import Tokenizer, count_fields_like
from cbench_server.types import Example

_PAGE = 256
_OWN_FIELDS = ("id", "dataset")


class References:
    """Fields that replace those of the originals with the same id."""

    def __init__(self, examples: Iterator[Example]) -> None:
        self._fields: dict[tuple[type, Any], Example] = {}
        self.matched = 0
        for example in examples:
            if "id" not in example:
                raise BadDataset("a reference has no id, so it corrects no example. Give it one.")
            fields = {name: value for name, value in example.items() if name not in _OWN_FIELDS}
            self._fields[type(example["id"]), example["id"]] = fields

    def __len__(self) -> int:
        return len(self._fields)

    def apply(self, example: Example) -> Example:
        """Return the example, corrected where there is something to correct."""
        fields = self._fields.get((type(example["id"]), example["id"]))
        if fields is None:
            return example
        self.matched += 1
        return {**example, **fields}


class RescoredSpool(Spool):
    """The examples of a run, taken from its parent."""

    def __init__(
        self,
        store: RunStore,
        run: Run,
        read_references: Callable[[], Iterator[Example]],
        tokenizer: Tokenizer,
        readers: int,
    ) -> None:
        super().__init__(store, run.run_id, [], readers)
        self._run = run
        self._read_references = read_references
        self._tokenizer = tokenizer

    async def fill(self) -> None:
        """Copy what is not yet copied."""
        start, complete = await self._store.spooled(self._run_id)
        await self._advance(start, complete)
        if complete:
            return
        references = await asyncio.to_thread(lambda: References(self._read_references()))
        # From the first one, though some may be copied: all must be seen to tell what matches.
        place = 0
        while page := await self._store.read_examples(self._run.parent_run_id, place, _PAGE):
            corrected = await asyncio.to_thread(self._correct, page, references)
            place = page[-1].ordinal + 1
            if place > start:
                await self._store.add_examples(
                    self._run_id, [each for each in corrected if each.ordinal >= start]
                )
                start = place
                await self._advance(start, False)
        if len(references) and not references.matched:
            raise BadDataset(
                f"none of the {len(references)} references has the id of an example of run "
                f'"{self._run.parent_run_id}". An id keeps its type: 1 and "1" differ.'
            )
        await self._store.add_examples(self._run_id, [], complete=True)
        await self._advance(start, True)

    def _correct(
        self, page: Sequence[SpooledExample], references: References
    ) -> list[SpooledExample]:
        return [self._correct_one(spooled, references) for spooled in page]

    def _correct_one(self, spooled: SpooledExample, references: References) -> SpooledExample:
        example = references.apply(spooled.example)
        if example is spooled.example:
            return spooled
        fields = frozenset(self._run.spec.text_fields) or None
        counts = count_fields_like(
            example, spooled.example, spooled.field_tokens, self._tokenizer, fields
        )
        digest = canonical_digest(example)
        return replace(spooled, example=example, digest=digest, field_tokens=counts)

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        """Count as done what the parent never did."""
        parent = self._run.parent_run_id
        answered = await self._store.completed(parent, system, start, stop)
        every = {
            (ordinal, repeat)
            for ordinal in range(start, stop)
            for repeat in range(self._run.spec.repeats)
        }
        return await super().completed(system, start, stop) | (every - answered)


class RecordedCaller:
    """Stands for a system whose answers are recorded; it is never called."""

    def __init__(self, description: SystemDescription) -> None:
        self.description = description

    async def call(self, example: Example, *, call_id: str, timeout: float) -> Reply:
        raise RunFailed(
            Failure(
                "daemon",
                "ROW_GONE",
                f'a row of system "{self.description.name}" is gone from the run that is '
                "scored anew. Was that run deleted?",
            )
        )

    async def wait_connected(self, timeout: float) -> bool:
        return True

    async def close(self) -> None: ...


def recorded_callers(run: Run) -> list[RecordedCaller]:
    """Stand in for the systems of a run that is scored anew."""
    described = {each["name"]: each for each in run.config.get("systems", [])}
    return [
        RecordedCaller(SystemDescription(**{**described.get(name, {}), "name": name}))
        for name in run.systems
    ]


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
    # A parent that was itself scored anew has examples that were corrected then.
    if earlier := parent.config.get("rescoring"):
        rescoring["earlier"] = earlier
    return {**config, "datasets": datasets, "rescoring": rescoring}
