"""The store as the owner of a run sees it: commits carry its claim, and none fails for want of it.

A store that is busy, full or read-only is away, as a system may be: the run
waits for it. That cannot be stored, so `away` tells it to whoever asks. There is
no end to this patience, for neither could the end be stored.

What has begun to be written is written, though whoever wrote it is stopped; `settled` waits
for that, so that the end of a run counts all that is stored of it.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from cbench_server.errors import StoreAway
from cbench_server.events import Stored, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.runs.intents import Intents
from cbench_server.runs.ownership import Claim, Ownership
from cbench_server.runs.store import (
    ALL_ROWS,
    Committed,
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
from cbench_server.runs.unbroken import Unbroken
from cbench_server.spec import Run, RunState

T = TypeVar("T")

log = logging.getLogger("cbench_server.runs")

_SLOW_S = 5.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0


class OwnedStore:
    """A RunStore that writes one run, by a claim to it; that one says what its methods do."""

    def __init__(
        self,
        store: RunStore,
        claim: Claim,
        committed: Committed | None = None,
    ) -> None:
        self._store = store
        self._committed = committed
        self._claim = claim
        self._troubles: dict[object, str] = {}
        self._named = {"run_id": claim.run_id}
        self._unbroken = Unbroken()
        self.is_patient = True
        """Whether a store that is away is waited for; else StoreAway is raised."""

    @property
    def owners(self) -> Ownership:
        return self._store.owners

    @property
    def intents(self) -> Intents:
        return self._store.intents

    @property
    def away(self) -> str:
        """Why the store is waited for; empty while it is not."""
        return next(iter(self._troubles.values()), "")

    async def settled(self) -> None:
        """Wait for what is still being written, or done unbroken."""
        await self._unbroken.all_done()

    async def unbroken(self, work: Coroutine[Any, Any, T]) -> T:
        """Do what reads and writes the run, to its end; `settled` waits for that."""
        return await self._unbroken.do(work)

    async def _written(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await self._patiently(lambda: self._unbroken.do(work()))

    async def _patiently(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        pause = _FIRST_PAUSE_S
        call = object()
        slow = asyncio.get_running_loop().call_later(_SLOW_S, self._note_slow, call)
        try:
            while True:
                try:
                    return await work()
                except StoreAway as error:
                    if not self.is_patient:
                        raise
                    if not self._troubles:
                        log.warning("a run waits for its store: %s", error, extra=self._named)
                    self._troubles[call] = str(error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_S)
        finally:
            slow.cancel()
            self._troubles.pop(call, None)

    def _note_slow(self, call: object) -> None:
        self._troubles.setdefault(
            call, f"the store has not answered for {_SLOW_S:g}s; another process may keep it busy."
        )

    # What it writes.

    async def create_run(self, run: Run) -> Run:
        return await self._store.create_run(run)

    async def append(
        self,
        run_id: str,
        events: Sequence[StoredEvent],
        *,
        update: Mapping[str, Any] | None = None,
        claim: Claim | None = None,
    ) -> int:
        mine = claim or self._claim
        begun = time.perf_counter()

        async def write() -> int:
            last = await self._store.append(run_id, events, update=update, claim=mine)
            if self._committed is not None:
                self._committed(run_id, events, time.perf_counter() - begun)
            return last

        return await self._written(write)

    async def add_examples(
        self,
        run_id: str,
        examples: Sequence[SpooledExample],
        *,
        complete: bool = False,
        claim: Claim | None = None,
    ) -> None:
        mine = claim or self._claim
        await self._written(
            lambda: self._store.add_examples(run_id, examples, complete=complete, claim=mine)
        )

    async def share_examples(self, source: str, run_id: str, *, claim: Claim | None = None) -> bool:
        mine = claim or self._claim
        return await self._written(lambda: self._store.share_examples(source, run_id, claim=mine))

    async def copy_examples(
        self, source: str, run_id: str, start: int, limit: int, *, claim: Claim | None = None
    ) -> int:
        mine = claim or self._claim
        return await self._written(
            lambda: self._store.copy_examples(source, run_id, start, limit, claim=mine)
        )

    async def delete_run(self, run_id: str, *, claim: Claim | None = None) -> bool:
        return await self._store.delete_run(run_id, claim=claim or self._claim)

    async def prune(self, rule: RetentionRule, *, dry_run: bool = False) -> list[PrunedRun]:
        return await self._store.prune(rule, dry_run=dry_run)

    async def pin(self, run_id: str, pinned: bool = True) -> None:
        await self._store.pin(run_id, pinned)

    async def finish_deletions(self) -> list[str]:
        return await self._store.finish_deletions()

    # What it reads.

    def pack_examples(self, examples: Sequence[SpooledExample]) -> None:
        self._store.pack_examples(examples)

    async def find_request(self, request_id: str) -> Run | None:
        return await self._patiently(lambda: self._store.find_request(request_id))

    async def get_run(self, run_id: str) -> Run:
        return await self._patiently(lambda: self._store.get_run(run_id))

    async def list_runs(
        self,
        *,
        limit: int = 50,
        before: str | None = None,
        states: Collection[RunState] = (),
        labels: Mapping[str, str] | None = None,
    ) -> list[Run]:
        return await self._patiently(
            lambda: self._store.list_runs(limit=limit, before=before, states=states, labels=labels)
        )

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
        return await self._store.page_runs(
            limit=limit,
            before=before,
            states=states,
            labels=labels,
            created_by=created_by,
            max_bytes=max_bytes,
        )

    async def uploads_in_use(self) -> set[str] | None:
        return await self._store.uploads_in_use()

    async def unfinished(self) -> list[str]:
        return await self._patiently(self._store.unfinished)

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
        return await self._patiently(
            lambda: self._store.read_events(
                run_id, after_seq, limit=limit, max_bytes=max_bytes, rows=rows, processed=processed
            )
        )

    async def wait_for_events(self, run_id: str, after_seq: int, timeout: float) -> bool:
        return await self._store.wait_for_events(run_id, after_seq, timeout)

    async def read_examples(self, run_id: str, start: int, limit: int) -> list[SpooledExample]:
        return await self._patiently(lambda: self._store.read_examples(run_id, start, limit))

    async def spooled(self, run_id: str) -> tuple[int, bool]:
        return await self._patiently(lambda: self._store.spooled(run_id))

    async def completed(
        self, run_id: str, system: str, start: int, stop: int
    ) -> set[tuple[int, int]]:
        return await self._patiently(lambda: self._store.completed(run_id, system, start, stop))

    async def read_rows(
        self, run_id: str, query: RowQuery = ALL_ROWS, token: str | None = None
    ) -> RowPage:
        return await self._patiently(lambda: self._store.read_rows(run_id, query, token))

    async def read_rows_at(self, keys: Sequence[RowKey]) -> list[EvalRow | None]:
        return await self._patiently(lambda: self._store.read_rows_at(keys))

    async def example_digests(self, run_id: str, limit: int) -> list[str]:
        return await self._patiently(lambda: self._store.example_digests(run_id, limit))

    def iterate_rows(self, run_id: str, system: str) -> AsyncIterator[list[EvalRow]]:
        return iterate_rows(self, run_id, system)

    async def close(self) -> None:
        """Do nothing: the store has other users."""


if TYPE_CHECKING:
    _is_a_run_store: type[RunStore] = OwnedStore
