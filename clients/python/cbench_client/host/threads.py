"""A pool of threads for synchronous user code.

Unlike the standard pool its threads are daemons, because user code that never
returns must not keep the process from ending, and results that come close
together wake the event loop once.
"""

import asyncio
import contextvars
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

# What a function returned, or what it raised.
_Outcome = tuple[Any, BaseException | None]


class _Pending(asyncio.Future[_Outcome]):
    """The outcome of a function that a thread has; as long as it has it, nothing cancels it.

    A task that is cancelled meanwhile learns of it when the function has returned.
    """

    def __init__(self, pool: "ThreadPool") -> None:
        super().__init__()
        self._pool = pool

    def cancel(self, msg: Any = None) -> bool:
        return self._pool.is_closed and super().cancel(msg)


_Work = tuple[_Pending, Callable[[], Any]]


class ThreadPool:
    """At most `size` threads, started as they are needed."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._started = 0
        self._busy = 0
        self.is_closed = False
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._results: deque[tuple[_Pending, _Outcome]] = deque()
        self._woken = False
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run `function` in a thread and return what it returns, or raise what it raises.

        Cancelling takes effect only when the function has returned, so that
        a caller that counts threads or holds a lock never lets go too early.
        """
        loop = asyncio.get_running_loop()
        future = _Pending(self)
        self._busy += 1
        if self._busy > self._started and self._started < self._size:
            self._started += 1
            threading.Thread(
                target=self._serve, args=(loop,), name=f"{self._name}-{self._started}", daemon=True
            ).start()
        self._work.put((future, function))
        try:
            value, error = await future
        finally:
            self._busy -= 1
        if error is not None:
            raise error
        return value

    def close(self) -> None:
        """Let idle threads end, and wait no longer for busy ones."""
        self.is_closed = True
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while (item := self._work.get()) is not None:
            future, function = item
            try:
                # An empty context: what one call sets must not reach the next.
                outcome: _Outcome = (contextvars.Context().run(function), None)
            except BaseException as error:
                outcome = (None, error)
            self._report(loop, future, outcome)
            # An idle thread must not keep a finished call's data alive.
            del item, future, function, outcome

    def _report(
        self,
        loop: asyncio.AbstractEventLoop,
        future: _Pending,
        outcome: _Outcome,
    ) -> None:
        with self._lock:
            self._results.append((future, outcome))
            if self._woken:
                return
            self._woken = True
        try:
            loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            return  # The loop is closed, and nothing waits for it.

    def _deliver(self) -> None:
        with self._lock:
            results, self._results = self._results, deque()
            self._woken = False
        for future, outcome in results:
            if not future.done():
                future.set_result(outcome)
