"""Wake-ups for those who wait for a run's next event."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class Watchers:
    """Futures of tasks that wait, by run; used on the event loop only."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)

    def publish(self, run_ids: Iterable[str]) -> None:
        """Wake all who wait for one of these runs."""
        for run_id in run_ids:
            for waiter in self._waiting.get(run_id, ()):
                if not waiter.done():
                    waiter.set_result(None)

    @contextmanager
    def listen(self, run_id: str) -> Iterator["asyncio.Future[None]"]:
        """Give a future that is done at the run's next event, while the context lasts.

        Whoever looks for events inside the context, and then waits for the
        future, misses none.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[run_id].add(waiter)
        try:
            yield waiter
        finally:
            waiter.cancel()
            self._waiting[run_id].discard(waiter)
            if not self._waiting[run_id]:
                del self._waiting[run_id]
