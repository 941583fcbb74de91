"""Store of runs in a database of any kind: one writing thread, a few reading ones."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from cbench_server.durable import failpoints
from cbench_server.errors import InvalidInput, StoreError, WrongState
from cbench_server.events import RowScored, RunAccepted, Stored, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.runs.ownership import Claim, Ownership
from cbench_server.runs.store import (
    ALL_ROWS,
    PrunedRun,
    RetentionRule,
    RowKey,
    RowPage,
    RowQuery,
    RunPage,
    RunStore,
    SpooledExample,
    iterate_rows,
)
from cbench_server.spec import Run, RunState
from cbench_server.storage import codec, deletion, pages, queries, retention, run_list, run_rows
from cbench_server.storage.connection import Connection, Database, Readers
from cbench_server.storage.intents import StoredIntents
from cbench_server.storage.locks import is_run_id
from cbench_server.storage.tail import Tails
from cbench_server.storage.transaction import UPDATABLE, Transaction
from cbench_server.storage.uploads import UploadStore
from cbench_server.storage.wakeups import Watchers
from cbench_server.storage.writer import Writer

P = ParamSpec("P")
T = TypeVar("T")

# Longer bodies are compressed before they are queued, so that they hold up no commit.
_LONG_BODY = 256_000


class Owners(Ownership, Protocol):
    """Claims that a store can check where it writes."""

    def check(self, claim: Claim, connection: Connection) -> None:
        """Raise LostClaim unless a claim stands until the end of the transaction that asks."""
        ...

    def remove(self, run_id: str) -> None:
        """Forget a run that is deleted; only its owner may do so."""
        ...


class SqlStore:
    """A `RunStore` in a database; that one says what its methods do."""

    is_shared = False
    """Whether daemons that know nothing of one another may use it."""
    unwritable = ""
    """Why it can only be read; empty if it can be written."""
    poll_seconds = 0.2
    """How often it looks for what another process wrote; what this one writes wakes watchers."""

    def __init__(
        self,
        database: Database,
        locks: Owners,
        clock: Callable[[], float] = time.time,
        max_bytes: int = 0,
    ) -> None:
        self.database = database
        self._is_closed = False
        self._clock = clock
        self.locks = locks
        self._watchers = Watchers()
        self._tails = Tails()
        self._readers = Readers(database)
        self.writer = Writer(database, self.committed, max_bytes)
        self.intents = StoredIntents(self, clock, self.tell_others)

    def uploads(self, home: Path, max_upload_bytes: int, max_total_bytes: int) -> UploadStore:
        """Return the uploads that runs of this store may name. Limits of 0 are none."""
        return UploadStore(home, max_upload_bytes, max_total_bytes)

    def tell_others(self) -> None:
        """Tell other daemons that there may be something to do, where that can be."""

    def committed(self, run_ids: Iterable[str]) -> None:
        """Tell those who wait here that runs have new events."""
        self._watchers.publish(run_ids)

    async def create_run(self, run: Run) -> Run:
        if not is_run_id(run.run_id):
            raise InvalidInput(
                f'"{run.run_id}" is not a valid run id: use letters, digits, ".", "_", "-".'
            )
        record = codec.encode_run(run)
        accepted = codec.encode_event(RunAccepted(replace(run, last_seq=1)))
        made = await self.writer.write(
            lambda write: write.create_run(run, record, accepted, self._clock()), grows=True
        )
        return await self.get_run(made or run.run_id)

    async def find_request(self, request_id: str) -> Run | None:
        return await self.read(run_rows.find_request, request_id)

    async def get_run(self, run_id: str) -> Run:
        return await self.read(run_rows.get_run, run_id)

    async def list_runs(
        self,
        *,
        limit: int = 50,
        before: str | None = None,
        states: Collection[RunState] = (),
        labels: Mapping[str, str] | None = None,
    ) -> list[Run]:
        found: list[Run] = []
        while len(found) < limit:
            page = await self.page_runs(
                limit=limit - len(found), before=before, states=states, labels=labels
            )
            found += page.runs
            before = page.next_before
            if before is None:
                break
        return found

    async def page_runs(
        self,
        *,
        limit: int = 50,
        before: str | None = None,
        states: Collection[RunState] = (),
        labels: Mapping[str, str] | None = None,
        created_by: str | None = None,
        max_bytes: int = 8_000_000,
    ) -> RunPage:
        filters = (states, labels or {}, created_by)
        return await self.read(run_list.page_runs, limit, before, filters, max_bytes)

    async def unfinished(self) -> list[str]:
        return await self.read(run_list.unfinished_runs)

    async def append(
        self,
        run_id: str,
        events: Sequence[StoredEvent],
        *,
        update: Mapping[str, Any] | None = None,
        claim: Claim | None = None,
    ) -> int:
        changes = update or {}
        if unknown := set(changes) - UPDATABLE:
            raise ValueError(f"these attributes of a run cannot be set: {sorted(unknown)}")
        encoded = [codec.encode_event(event) for event in events]
        for event in encoded:
            if event.body is not None and len(event.body) > _LONG_BODY:
                await self._in_pool(event.pack_body)
        only_rows = not changes and all(isinstance(event, RowScored) for event in events)
        now = self._clock()
        sizes = [event.size for event in encoded]
        is_added = claim is not None and "state" not in changes and bool(events)

        def append(write: Transaction) -> tuple[int, int]:
            if is_added:
                write.check_open(run_id)
            return write.append(run_id, encoded, changes, now)

        last_seq, added = await self.writer.write(
            self._fenced(claim, append),
            rows=len(encoded) if only_rows else 0,
            size=sum(sizes),
            grows=any(event.kind == codec.ROW for event in encoded),
        )
        if added == len(events):
            self._tails.add(run_id, last_seq, events, sizes, now)
        else:
            self._tails.forget(run_id)
        return last_seq

    async def read_events(
        self,
        run_id: str,
        after_seq: int,
        *,
        limit: int = 1000,
        max_bytes: int = 1_000_000,
        rows: bool = True,
        processed: bool = False,
    ) -> list[Stored]:
        # A run that another process may write to is read from the file.
        if self.locks.is_mine(run_id):
            page = self._tails.read(run_id, after_seq, limit, max_bytes, rows)
            if page is not None:
                return page
        return await self.read(
            queries.read_events,
            run_id,
            after_seq,
            limit=limit,
            max_bytes=max_bytes,
            rows=rows,
            processed=processed,
        )

    async def wait_for_events(self, run_id: str, after_seq: int, timeout: float) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            with self._watchers.listen(run_id) as woken:
                is_ours = self.locks.is_mine(run_id)
                known = self._tails.last_seq(run_id) if is_ours else None
                last_seq = known or (await self.read(run_rows.find_run, run_id)).last_seq
                remaining = deadline - loop.time()
                if last_seq > after_seq or remaining <= 0:
                    return last_seq > after_seq
                patience = remaining if is_ours else min(remaining, self.poll_seconds)
                await asyncio.wait([woken], timeout=patience)

    def pack_examples(self, examples: Sequence[SpooledExample]) -> None:
        for example in examples:
            example.packed = codec.pack_example(example)

    async def add_examples(
        self,
        run_id: str,
        examples: Sequence[SpooledExample],
        *,
        complete: bool = False,
        claim: Claim | None = None,
    ) -> None:
        await self.writer.write(
            self._fenced(
                claim, lambda write: write.add_examples(run_id, examples, complete=complete)
            ),
            size=sum([len(example.packed) for example in examples]),
            grows=bool(examples),
        )
        for example in examples:
            example.packed = b""

    async def share_examples(self, source: str, run_id: str, *, claim: Claim | None = None) -> bool:
        return await self.writer.write(
            self._fenced(claim, lambda write: write.share_examples(source, run_id))
        )

    async def copy_examples(
        self, source: str, run_id: str, start: int, limit: int, *, claim: Claim | None = None
    ) -> int:
        return await self.writer.write(
            self._fenced(claim, lambda write: write.copy_examples(source, run_id, start, limit)),
            grows=True,
        )

    async def read_examples(self, run_id: str, start: int, limit: int) -> list[SpooledExample]:
        return await self.read(queries.read_examples, run_id, start, limit)

    async def spooled(self, run_id: str) -> tuple[int, bool]:
        head = await self.read(run_rows.find_run, run_id)
        return head.examples, bool(head.spool_complete)

    async def completed(
        self, run_id: str, system: str, start: int, stop: int
    ) -> set[tuple[int, int]]:
        return await self.read(queries.read_completed, run_id, system, start, stop)

    async def read_rows(
        self, run_id: str, query: RowQuery = ALL_ROWS, token: str | None = None
    ) -> RowPage:
        # Of a live run, rows that are done out of order may be missed.
        return await self.read(pages.read_rows, run_id, query, token)

    async def read_rows_at(self, keys: Sequence[RowKey]) -> list[EvalRow | None]:
        return await self.read(queries.read_rows_at, keys)

    async def example_digests(self, run_id: str, limit: int) -> list[str]:
        return await self.read(queries.example_digests, run_id, limit)

    def iterate_rows(self, run_id: str, system: str) -> AsyncIterator[list[EvalRow]]:
        return iterate_rows(self, run_id, system)

    async def delete_run(self, run_id: str, *, claim: Claim | None = None) -> bool:
        if not is_run_id(run_id):
            return False
        if claim is not None:
            return await self.delete_owned(claim)
        claim = await self.locks.acquire(run_id)
        if claim is None:
            raise WrongState(
                f'run "{run_id}" is being worked on. Cancel it first: cbench cancel {run_id}'
            )
        try:
            return await self.delete_owned(claim)
        finally:
            await self.locks.release(claim)

    async def delete_owned(self, claim: Claim) -> bool:
        """Delete a run that this process owns; return False if there is none."""
        run_id = claim.run_id
        self._tails.forget(run_id)
        key = await self.writer.write(self._fenced(claim, lambda write: write.mark_deleted(run_id)))
        if key is not None:
            left: int | None = key
            failpoints.hit("delete.marked")
            while left is not None:
                failpoints.hit("delete.piece")
                left = await self.writer.write(partial(_delete_some, left))
            while await self.writer.write(lambda write: write.connection.compact_some()):
                pass
        self.locks.remove(run_id)
        return key is not None

    async def prune(self, rule: RetentionRule, *, dry_run: bool = False) -> list[PrunedRun]:
        chosen = await self.read(retention.expired, rule, self._clock())
        if dry_run:
            return chosen
        gone = set(await self._delete_free([each.run_id for each in chosen]))
        return [each for each in chosen if each.run_id in gone]

    async def pin(self, run_id: str, pinned: bool = True) -> None:
        await self.writer.write(lambda write: write.pin(run_id, pinned=pinned))

    async def finish_deletions(self) -> list[str]:
        return await self._delete_free(await self.read(retention.half_deleted))

    async def _delete_free(self, run_ids: Sequence[str]) -> list[str]:
        """Delete those of the runs that no process holds."""
        deleted = []
        for run_id in run_ids:
            claim = await self.locks.acquire(run_id)
            if claim is not None:
                try:
                    await self.delete_owned(claim)
                finally:
                    await self.locks.release(claim)
                deleted.append(run_id)
        return deleted

    async def uploads_in_use(self) -> set[str] | None:
        return await self.read(retention.uploads_in_use)

    @property
    def owners(self) -> Ownership:
        return self.locks

    def _fenced(
        self, claim: Claim | None, work: Callable[[Transaction], T]
    ) -> Callable[[Transaction], T]:
        """Have a write refused whose claim is lost when its turn comes."""

        def check_first(write: Transaction) -> T:
            if claim is not None and claim not in write.checked:
                self.locks.check(claim, write.connection)
                write.checked.add(claim)
            return work(write)

        return check_first

    def shut(self) -> None:
        """Close it, blocking: first what writes, then what reads."""
        self.writer.close()
        self._readers.close()

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.to_thread(self.shut)

    async def read(
        self,
        read: "Callable[Concatenate[Any, P], T]",
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Do a read on one of the reading threads."""
        return await self._in_pool(lambda: self._readers.call(read, *args, **kwargs))

    async def _in_pool(self, work: Callable[[], T]) -> T:
        if self._is_closed:
            raise StoreError(f"the store {self.database.name} is closed.")
        return await asyncio.get_running_loop().run_in_executor(self._readers.pool, work)


def _delete_some(key: int, write: Transaction) -> int | None:
    return deletion.delete_some(write.connection, key)


if TYPE_CHECKING:
    _is_a_run_store: type[RunStore] = SqlStore
