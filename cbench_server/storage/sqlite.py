"""The store we ship: one SQLite file, one writing thread, a few reading ones."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from cbench_server.errors import InvalidInput, StoreError, WrongState
from cbench_server.events import RowScored, RunAccepted, Stored, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.runs.store import (
    ALL_ROWS,
    RowKey,
    RowPage,
    RowQuery,
    RunStore,
    SpooledExample,
)
from cbench_server.spec import Run, RunState
from cbench_server.storage import codec, pages, queries
from cbench_server.storage.database import Readers, connect, explained
from cbench_server.storage.locks import RunLocks, is_run_id
from cbench_server.storage.migrate import migrate
from cbench_server.storage.tail import Tails
from cbench_server.storage.transaction import UPDATABLE, Transaction
from cbench_server.storage.wakeups import Watchers
from cbench_server.storage.writer import Writer

P = ParamSpec("P")
T = TypeVar("T")

# What another process writes is noticed by looking; what this one writes wakes its watchers.
_POLL_SECONDS = 0.2
# Longer bodies are compressed before they are queued, so that they hold up no commit.
_LONG_BODY = 256_000
_VACUUM_PAGES = 2000


class SqliteStore:
    """A `RunStore` in `<home>/cbench.db`; that one says what its methods do.

    It needs a local disk: NFS is not supported.
    """

    @classmethod
    def open(cls, home: Path, clock: Callable[[], float] = time.time) -> "SqliteStore":
        """Open the store in `home`, creating both if need be; blocks for some milliseconds.

        Raises `StoreTooNew`, `StoreCorrupt` or `StoreError`, saying what to do.
        """
        path = home / "cbench.db"
        locks = home / "locks"
        with explained(home):
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            locks.mkdir(mode=0o700, exist_ok=True)
        with explained(path):
            # SQLite would make the file readable by others, and not object to a read-only one.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            with closing(connect(path)) as connection:
                migrate(connection, path)
            return cls(path, RunLocks(locks), clock)

    def __init__(self, path: Path, locks: RunLocks, clock: Callable[[], float]) -> None:
        self._path = path
        self._is_closed = False
        self._clock = clock
        self._locks = locks
        self._watchers = Watchers()
        self._tails = Tails()
        self._readers = Readers(path)
        self._writer = Writer(path, self._watchers.publish)

    async def create_run(self, run: Run) -> Run:
        if not is_run_id(run.run_id):
            raise InvalidInput(
                f'"{run.run_id}" is not a valid run id: use letters, digits, ".", "_", "-".'
            )
        record = codec.encode_run(run)
        accepted = codec.encode_event(RunAccepted(replace(run, last_seq=1)))
        made = await self._writer.write(
            lambda write: write.create_run(run, record, accepted, self._clock())
        )
        return await self.get_run(made or run.run_id)

    async def find_request(self, request_id: str) -> Run | None:
        return await self._read(queries.find_request, request_id)

    async def get_run(self, run_id: str) -> Run:
        return await self._read(queries.get_run, run_id)

    async def list_runs(
        self,
        *,
        limit: int = 50,
        before: str | None = None,
        states: Collection[RunState] = (),
        labels: Mapping[str, str] | None = None,
    ) -> list[Run]:
        return await self._read(queries.list_runs, limit, before, states, labels or {})

    async def append(
        self, run_id: str, events: Sequence[StoredEvent], *, update: Mapping[str, Any] | None = None
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
        last_seq, added = await self._writer.write(
            lambda write: write.append(run_id, encoded, changes, now),
            rows=len(encoded) if only_rows else 0,
            size=sum(sizes),
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
        if self._locks.is_held_here(run_id):
            page = self._tails.read(run_id, after_seq, limit, max_bytes, rows)
            if page is not None:
                return page
        return await self._read(
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
                is_ours = self._locks.is_held_here(run_id)
                known = self._tails.last_seq(run_id) if is_ours else None
                last_seq = known or (await self._read(queries.find_run, run_id))[1]
                remaining = deadline - loop.time()
                if last_seq > after_seq or remaining <= 0:
                    return last_seq > after_seq
                patience = remaining if is_ours else min(remaining, _POLL_SECONDS)
                await asyncio.wait([woken], timeout=patience)

    def pack_examples(self, examples: Sequence[SpooledExample]) -> None:
        for example in examples:
            example.packed = codec.pack_example(example)

    async def add_examples(
        self, run_id: str, examples: Sequence[SpooledExample], *, complete: bool = False
    ) -> None:
        await self._writer.write(
            lambda write: write.add_examples(run_id, examples, complete=complete),
            size=sum([len(example.packed) for example in examples]),
        )
        for example in examples:
            example.packed = b""

    async def share_examples(self, source: str, run_id: str) -> bool:
        return await self._writer.write(lambda write: write.share_examples(source, run_id))

    async def copy_examples(self, source: str, run_id: str, start: int, limit: int) -> int:
        return await self._writer.write(
            lambda write: write.copy_examples(source, run_id, start, limit)
        )

    async def read_examples(self, run_id: str, start: int, limit: int) -> list[SpooledExample]:
        return await self._read(queries.read_examples, run_id, start, limit)

    async def spooled(self, run_id: str) -> tuple[int, bool]:
        examples, is_complete, _ = await self._read(queries.read_flags, run_id)
        return examples, is_complete

    async def completed(
        self, run_id: str, system: str, start: int, stop: int
    ) -> set[tuple[int, int]]:
        return await self._read(queries.read_completed, run_id, system, start, stop)

    async def read_rows(
        self, run_id: str, query: RowQuery = ALL_ROWS, token: str | None = None
    ) -> RowPage:
        # Of a live run, rows that are done out of order may be missed.
        return await self._read(pages.read_rows, run_id, query, token)

    async def read_rows_at(self, keys: Sequence[RowKey]) -> list[EvalRow | None]:
        return await self._read(queries.read_rows_at, keys)

    async def example_digests(self, run_id: str, limit: int) -> list[str]:
        return await self._read(queries.example_digests, run_id, limit)

    async def iterate_rows(self, run_id: str, system: str) -> AsyncIterator[list[EvalRow]]:
        query, token = RowQuery(system=system, limit=1000), None
        while True:
            page = await self.read_rows(run_id, query, token)
            if page.rows:
                yield page.rows
            token = page.next_token
            if token is None:
                return

    async def delete_run(self, run_id: str) -> None:
        if not is_run_id(run_id):
            return
        if self._locks.is_held_here(run_id):
            await self._delete(run_id)
            return
        with self._locks.hold(run_id) as is_free:
            if not is_free:
                raise WrongState(
                    f'run "{run_id}" is being worked on by another process. '
                    f"Cancel it first: cbench cancel {run_id}"
                )
            await self._delete(run_id)

    async def _delete(self, run_id: str) -> None:
        self._tails.forget(run_id)
        key = await self._writer.write(lambda write: write.mark_deleted(run_id))
        if key is not None:
            left: int | None = key
            while left is not None:
                left = await self._writer.write(partial(_delete_some, left))
            while await self._writer.write(lambda write: write.vacuum_some(_VACUUM_PAGES)):
                pass
        self._locks.remove(run_id)

    async def delete_runs_older_than(self, seconds: float) -> list[str]:
        deleted = []
        for run_id in await self._read(queries.expired_runs, self._clock() - seconds):
            with self._locks.hold(run_id) as is_free:
                if is_free:
                    await self._delete(run_id)
                    deleted.append(run_id)
        return deleted

    async def request_cancel(self, run_id: str) -> None:
        await self._writer.write(lambda write: write.request_cancel(run_id))

    async def cancel_requested(self, run_id: str) -> bool:
        return (await self._read(queries.read_flags, run_id))[2]

    def lock_run(self, run_id: str) -> AbstractContextManager[bool]:
        return self._locks.hold(run_id)

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self._readers.close)

    async def _read(
        self,
        read: "Callable[Concatenate[Any, P], T]",
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return await self._in_pool(lambda: self._readers.call(read, *args, **kwargs))

    async def _in_pool(self, work: Callable[[], T]) -> T:
        if self._is_closed:
            raise StoreError(f"the store {self._path} is closed.")
        return await asyncio.get_running_loop().run_in_executor(self._readers.pool, work)


def _delete_some(key: int, write: Transaction) -> int | None:
    return write.delete_some(key)


if TYPE_CHECKING:
    _is_a_run_store: type[RunStore] = SqliteStore
