"""Runs of the store, read by code that runs in a thread: reports, comparisons and gates."""

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from cbench_server.errors import InvalidInput, ShuttingDown, UnknownRun
from cbench_server.reports.report import FullRow
from cbench_server.reports.stored_runs import shown_run
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowPage, RowQuery, RunStore
from cbench_server.spec import Run

_SHOWN = 5
_LOOK_S = 1.0
_ALL_ROWS = RowQuery(limit=5000)

T = TypeVar("T")


class StoredSource:
    """Reads what is stored, page by page, on the daemon's loop."""

    def __init__(self, store: RunStore, as_it_is: Callable[[Run], Run]) -> None:
        self._store = store
        self._as_it_is = as_it_is
        self._loop = asyncio.get_running_loop()
        self.is_given_up = False
        """Whether nobody waits for it any more."""

    def run(self, text: str, field: str) -> Run:
        """Return the run of this id, the only one whose id begins so, or the newest for `last`."""
        try:
            return self._get(self._wait(self.named(text, field)))
        except UnknownRun as error:
            error.field = field
            raise

    def whole_run(self, text: str, field: str) -> Run:
        """Return a run whose rows can all be read, or raise DamagedRun."""
        run = self.run(text, field)
        for _ in self._pages(run.run_id, _ALL_ROWS):
            pass
        return run

    def _get(self, run_id: str) -> Run:
        return shown_run(self._as_it_is(self._wait(self._store.get_run(run_id))))

    async def named(self, text: str, field: str) -> str:
        """Return the id that a text means, on the loop; one that is unknown is the text itself."""
        if not text:
            raise InvalidInput(f"{field} names no run.", field=field)
        found: list[str] = []
        before: str | None = None
        while True:
            page = await self._store.page_runs(limit=1000, before=before)
            for run in page.runs:
                if text in ("last", run.run_id):
                    return run.run_id
                if run.run_id.startswith(text):
                    found.append(run.run_id)
            before = page.next_before
            if before is None:
                break
        if len(found) > 1:
            some = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
            raise InvalidInput(f'{len(found)} runs begin with "{text}": {some}.', field=field)
        # A run whose id is damaged is listed by another one.
        return found[0] if found else text

    def rows(self, run_id: str, system: str) -> Iterator[EvalRow]:
        """See Source."""
        for page in self._pages(run_id, replace(_ALL_ROWS, system=system)):
            yield from page.rows

    def full_rows(self, run_id: str, system: str) -> Iterator[FullRow]:
        """See Source."""
        query = RowQuery(system=system, processed=True, original=True)
        for page in self._pages(run_id, query):
            assert page.originals is not None
            yield from zip(page.rows, page.originals, strict=True)

    def _pages(self, run_id: str, query: RowQuery) -> Iterator[RowPage]:
        token: str | None = None
        while True:
            page = self._wait(self._store.read_rows(run_id, query, token))
            yield page
            token = page.next_token
            if token is None:
                return

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self.is_given_up or self._loop.is_closed():
            work.close()
            raise ShuttingDown("nobody waits for this any more.")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        while True:
            try:
                return future.result(_LOOK_S)
            except concurrent.futures.TimeoutError:
                # A loop that has ended answers nobody.
                if self._loop.is_closed():
                    raise ShuttingDown("the daemon has ended.") from None
