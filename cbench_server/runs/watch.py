"""A watcher's view of a run: its stored events, by cursor, at the watcher's own pace."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from cbench_server.errors import ShuttingDown
from cbench_server.events import Progressed, RunFinished, Stored
from cbench_server.runs.store import RunStore

_PROGRESS_EVERY_S = 0.5
# A message costs as much as a dozen rows, so a live watcher lets a few gather.
_GATHER_S = 0.004


async def watch(
    store: RunStore,
    run_id: str,
    after_seq: int = 0,
    *,
    rows: bool = True,
    processed: bool = False,
    is_closing: Callable[[], bool] = lambda: False,
) -> AsyncIterator[list[Stored | Progressed]]:
    """Yield stored events after `after_seq`, each once and in order, with progress between them.

    Ends when the run is over and all of it has been seen. Reads a page only
    when the last one was taken, so a slow watcher costs no memory.
    """
    run = await store.get_run(run_id)
    cursor = after_seq
    progress_due = 0.0
    while True:
        page: list[Stored | Progressed] = list(
            await store.read_events(run_id, cursor, rows=rows, processed=processed)
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
            progress_due = time.monotonic() + _PROGRESS_EVERY_S
        if page:
            yield page
        # Without rows the cursor stops short of the end; what the page left
        # out has been seen all the same.
        seen = cursor if rows else max(cursor, run.last_seq)
        if run.state.is_final and seen >= run.last_seq:
            return
        if is_closing():
            raise ShuttingDown("the daemon is shutting down; watch the run again when it is back.")
        if is_quiet and rows:
            patience = max(0.0, progress_due - time.monotonic())
            await store.wait_for_events(run_id, seen, patience)
        await asyncio.sleep(_GATHER_S if rows else _PROGRESS_EVERY_S / 10)
