"""Examples on their way into a run: checked, counted and digested once, then read by every lane."""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from cbench_server.datasets.once import once
from cbench_server.datasets.validate import IdLedger, check_example
from cbench_server.errors import BadDataset, NothingMatches, blaming, contained
from cbench_server.limits import text_size
from cbench_server.runs.digests import canonical_digest
from cbench_server.runs.patience import Read, read_once
from cbench_server.runs.store import RunStore, SpooledExample
from cbench_server.runs.turns import CHOSEN_AMONG, CHOSEN_AMONG_BYTES
from cbench_server.tokens import Tokenizer, count_fields
from cbench_server.types import Example

FIRST_ROWS = 16
"""So many examples are loaded at first, so that the first rows start early."""
_CHUNK_ROWS = 256
_CHUNK_BYTES = 2_000_000
# Of stored examples that are kept, so that a lane close behind need not read them back.
_KEPT_BYTES = 1_000_000


def prepare(
    examples: Iterator[Example],
    *,
    label: str,
    first_ordinal: int,
    tokenizer: Tokenizer,
    text_fields: frozenset[str] | None,
    where: Mapping[str, str] | None = None,
    max_examples: int | None = None,
    digest: Callable[[Example], str] = canonical_digest,
) -> Iterator[SpooledExample]:
    """Check, tag, count and digest the examples of one dataset, one at a time."""
    chosen = choose(examples, label=label, where=where, max_examples=max_examples)
    for index, (example_id, example) in enumerate(chosen):
        whole = {"id": example_id, "dataset": label, **once(example)}
        whole["id"] = example_id
        tokens = count_fields(whole, tokenizer, text_fields)
        yield SpooledExample(
            first_ordinal + index, label, index, whole, digest(whole), tokens, text_size(whole)
        )


def choose(
    examples: Iterator[Example],
    *,
    label: str,
    where: Mapping[str, str] | None = None,
    max_examples: int | None = None,
) -> Iterator[tuple[str | int, Example]]:
    """Yield the examples that were asked for, checked, each with its id."""
    ledger = IdLedger()
    index = 0
    filters = dict(where or {})
    unmet = dict(filters)
    fields: dict[str, None] = {}
    for position, example in enumerate(examples):
        if max_examples is not None and index >= max_examples:
            return
        if filters:
            if index == 0:
                fields.update(dict.fromkeys(example))
            held = {name for name, value in filters.items() if str(example.get(name)) == value}
            for name in held:
                unmet.pop(name, None)
            if len(held) < len(filters):
                continue
        yield check_example(example, position, label, ledger), example
        index += 1
    if filters and index == 0:
        raise NothingMatches(_no_match(label, filters, unmet, fields))


def _no_match(
    label: str, filters: Mapping[str, str], unmet: Mapping[str, str], fields: Mapping[str, None]
) -> str:
    wanted = ", ".join(f"{name}={value}" for name, value in (unmet or filters).items())
    unknown = [name for name in filters if name not in fields]
    if unknown:
        known = ", ".join(map(str, list(fields)[:20]))
        return f'dataset "{label}": no example has a field "{unknown[0]}"; there are: {known:.300}'
    together = "" if unmet else " all at once"
    return f'dataset "{label}": no example has {wanted}{together}; check --where'


def take_chunk(examples: Iterator[SpooledExample], most: int) -> list[SpooledExample]:
    """Take the next few examples, bounded in number and in bytes; empty at the end."""
    chunk: list[SpooledExample] = []
    size = 0
    for spooled in itertools.islice(examples, most):
        chunk.append(spooled)
        size += spooled.size
        if size >= _CHUNK_BYTES:
            break
    return chunk


@dataclass
class _Chunk:
    """Examples that are not yet stored, or that some lanes have yet to read."""

    examples: list[SpooledExample]
    size: int
    readers: int
    is_stored: bool = False


def _field(place: int) -> str:
    return f"spec.datasets[{place}]"


class Source:
    """The examples of one dataset on their way, which is opened again where it was away."""

    def __init__(
        self, label: str, first: int, make: Callable[[int], Iterator[SpooledExample]]
    ) -> None:
        self.label = label
        self._first = first
        self._make = make
        self._examples: Iterator[SpooledExample] | None = None

    def take(self, most: int) -> list[SpooledExample]:
        """Return the next few; after an error those from the start."""
        if self._examples is None:
            self._examples = self._make(self._first)
        examples, self._examples = self._examples, None
        chunk = take_chunk(examples, most)
        self._examples = examples
        return chunk


class Spool:
    """The examples of one run in the store, readable while they are still being loaded.

    Lanes get a chunk while it is written. The store writes in order, so an
    example is stored before its rows.
    """

    def __init__(
        self,
        store: RunStore,
        run_id: str,
        sources: Mapping[str, Callable[[int], Iterator[SpooledExample]]],
        readers: int,
        *,
        is_fresh: bool = False,
        read: Read = read_once,
    ) -> None:
        """`sources` open one dataset each, given the ordinal of its first example.

        `is_fresh` says that the run has no rows yet, and `read` waits for a dataset that is away.
        """
        self._store = store
        self._run_id = run_id
        self._sources = sources
        self._read = read
        self._count = 0
        self._complete = False
        self._changed = asyncio.Condition()
        self._readers = readers
        self._is_fresh = is_fresh
        self._fresh: dict[int, _Chunk] = {}
        self._kept_bytes = 0
        self._may_go_on: asyncio.Event | None = None
        self._is_awaited = asyncio.Event()

    def pause_until(self, event: asyncio.Event) -> None:
        """Load no more than the first examples before that, so that loading slows nothing down."""
        self._may_go_on = event

    async def fill(self) -> None:
        """Load what is not yet in the store. Raises BadDataset when it meets a bad example."""
        stored, complete = await self._store.spooled(self._run_id)
        await self._advance(stored, complete)
        if complete:
            return
        ordinal = loaded = 0
        async with asyncio.TaskGroup() as group:
            writing: asyncio.Task[None] | None = None
            for place, (label, make) in enumerate(self._sources.items()):
                source = Source(label, ordinal, make)
                most = FIRST_ROWS
                while chunk := await self._next(place, source, most, has_begun=stored > 0):
                    most = _CHUNK_ROWS
                    ordinal = chunk[-1].ordinal + 1
                    if chunk[0].ordinal < stored:
                        if writing is not None:
                            await writing
                        with blaming(_field(place)):
                            chunk = await self._not_yet_stored(chunk, stored)
                    stored = max(stored, ordinal)
                    if chunk:
                        if writing is not None:
                            await writing
                        writing = group.create_task(self._write(self._keep(chunk)))
                        await self._advance(ordinal, False)
                    loaded += sum([spooled.size for spooled in chunk])
                    if ordinal >= CHOSEN_AMONG or loaded >= CHOSEN_AMONG_BYTES:
                        await self._go_on()
        if ordinal == 0:
            raise BadDataset(
                "the datasets hold no examples; check -n, --where and the file",
                field="spec.datasets",
            )
        await self._store.add_examples(self._run_id, [], complete=True)
        await self._advance(ordinal, True)

    async def _go_on(self) -> None:
        """Wait until loading may go on, or a lane waits for more."""
        if self._may_go_on is not None and not self._may_go_on.is_set():
            waits = [self._may_go_on.wait(), self._is_awaited.wait()]
            tasks = [asyncio.ensure_future(wait) for wait in waits]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
            self._is_awaited.clear()

    async def _next(
        self, place: int, source: Source, most: int, *, has_begun: bool
    ) -> list[SpooledExample]:
        def load() -> list[SpooledExample]:
            with blaming(_field(place)), contained("the code that reads the dataset", BadDataset):
                chunk = source.take(most)
            self._store.pack_examples(chunk)
            return chunk

        return await self._read(source.label, load, has_begun=has_begun)

    def _keep(self, examples: list[SpooledExample]) -> _Chunk:
        size = sum([spooled.size for spooled in examples])
        chunk = self._fresh[examples[0].ordinal] = _Chunk(examples, size, self._readers)
        return chunk

    async def _write(self, chunk: _Chunk) -> None:
        """Store a chunk; afterwards it is kept only while there is room."""
        await self._store.add_examples(self._run_id, chunk.examples)
        chunk.is_stored = True
        if chunk.readers == 0 or self._kept_bytes + chunk.size > _KEPT_BYTES:
            del self._fresh[chunk.examples[0].ordinal]
        else:
            self._kept_bytes += chunk.size

    async def _not_yet_stored(
        self, chunk: list[SpooledExample], stored: int
    ) -> list[SpooledExample]:
        """Drop what was spooled before, having made sure that it is still the same."""
        known = {
            spooled.ordinal: spooled.digest
            for spooled in await self._store.read_examples(
                self._run_id, chunk[0].ordinal, len(chunk)
            )
        }
        for spooled in chunk:
            if known.get(spooled.ordinal, spooled.digest) != spooled.digest:
                raise BadDataset(
                    f'dataset "{spooled.dataset}" has changed since the run began: the example at '
                    f"position {spooled.index} is another one. Start a new run."
                )
        return [spooled for spooled in chunk if spooled.ordinal >= stored]

    async def _advance(self, count: int, complete: bool) -> None:
        async with self._changed:
            self._count = max(count, self._count)
            self._complete = complete
            self._changed.notify_all()

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        """Return examples from `start` on, waiting for the loader; empty at the end."""
        if start >= self._count and not self._complete:
            self._is_awaited.set()
            async with self._changed:
                await self._changed.wait_for(lambda: self._count > start or self._complete)
        if start >= self._count:
            return []
        if fresh := self._take(start):
            return fresh
        return await self._store.read_examples(self._run_id, start, limit)

    def _take(self, start: int) -> list[SpooledExample]:
        chunk = self._fresh.get(start)
        if chunk is None:
            return []
        chunk.readers -= 1
        if chunk.readers == 0 and chunk.is_stored:
            del self._fresh[start]
            self._kept_bytes -= chunk.size
        return chunk.examples

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        """Return the (ordinal, repeat) of the rows the store has already."""
        if self._is_fresh:
            return set()
        return await self._store.completed(self._run_id, system, start, stop)
