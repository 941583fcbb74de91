"""A watcher's view of a run: its stored events, by cursor, at the watcher's own pace."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any

from cbench_server.durable import failpoints
from cbench_server.errors import ShuttingDown, StoreAway
from cbench_server.events import Progressed, RunFinished, Seen, StateChanged, Stored, Unstored
from cbench_server.runs.store import RunStore
from cbench_server.spec import Run, RunState

_PROGRESS_EVERY_S = 0.5
# A message costs as much as a dozen rows, so a live watcher lets a few gather.
_GATHER_S = 0.008
_AWAY_S = 1.0


async def watch(
    store: RunStore,
    run_id: str,
    after_seq: int = 0,
    *,
    rows: bool = True,
    processed: bool = False,
    is_closing: Callable[[], bool] = lambda: False,
    as_it_is: Callable[[Run], Run] = lambda run: run,
    reading: AbstractAsyncContextManager[Any] | None = None,
    max_bytes: int = 1_000_000,
) -> AsyncIterator[list[Seen]]:
    """Yield stored events after `after_seq`, each once and in order, with progress between them.

    Ends when the run is over and all of it has been seen. Reads a page only
    when the last one was taken, so a slow watcher costs no memory. `as_it_is` adds
    what cannot be stored; a change of that is told as it comes, without a place among
    the stored events. `reading` lets so many watchers at a time have a page that is not taken yet.
    """
    turn = reading or nullcontext()
    async with turn:
        run = await store.get_run(run_id)
    cursor = after_seq
    progress_due = 0.0
    told: StateChanged | None = None
    while True:
        page: list[Seen] = []
        is_quiet = False
        pause = _GATHER_S if rows else _PROGRESS_EVERY_S / 10
        try:
            async with turn:
                page += await store.read_events(
                    run_id, cursor, rows=rows, processed=processed, max_bytes=max_bytes
                )
                is_over = False
                if page:
                    last = page[-1]
                    assert isinstance(last, Stored)
                    cursor = last.seq
                    is_over = isinstance(last.event, RunFinished)
                is_quiet = not page
                if is_over or time.monotonic() >= progress_due:
                    run = await store.get_run(run_id)
                    if not run.state.is_final:
                        page.append(Progressed(run))
                        now = as_it_is(run)
                        state = StateChanged(now.state, now.waiting_reason)
                        if (state if now is not run else None) != told:
                            page.append(Unstored(state))
                            told = state if now is not run else None
                    progress_due = time.monotonic() + _PROGRESS_EVERY_S
        except StoreAway as error:
            # It is waited for, like whatever else a run needs.
            is_quiet = False
            state = StateChanged(RunState.WAITING, str(error))
            if told is None or told.state is not RunState.WAITING:
                page.append(Unstored(state))
                told = state
            pause = _AWAY_S
        if page:
            failpoints.hit("stream.before")
            # Not kept here until the watcher takes the next: as objects it is large.
            handed, page = [page], []
            yield handed.pop()
        # Without rows the cursor stops short of the end; what the page left
        # out has been seen all the same.
        seen = cursor if rows else max(cursor, run.last_seq)
        if run.state.is_final and seen >= run.last_seq:
            return
        if is_closing():
            raise ShuttingDown("the daemon is shutting down; watch the run again when it is back.")
        if is_quiet and rows:
            patience = max(0.0, progress_due - time.monotonic())
            with suppress(StoreAway):  # The next look tells of it.
                await store.wait_for_events(run_id, seen, patience)
        await asyncio.sleep(pause)
