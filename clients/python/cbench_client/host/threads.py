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


class _Pending(asyncio.Future[tuple[Any, BaseException | None]]):
    """The outcome of a function that a thread has; as long as it has it, nothing cancels it.

    A task that is cancelled meanwhile learns of it when the function has returned.
    """

    def __init__(self, pool: "ThreadPool") -> None:
        super().__init__()
        self._pool = pool

    def cancel(self, msg: Any = None) -> bool:
        return self._pool.is_closed and super().cancel(msg)

    def end(self, value: Any, error: BaseException | None) -> None:
        """Take the outcome."""
        if not self.done():
            self.set_result((value, error))


Ended = Callable[[Any, BaseException | None], None]
"""Told on the event loop what a function returned, or what it raised. It must not raise."""
_Work = tuple[Ended, Callable[[], Any]]


class ThreadPool:
    """At most `size` threads, started as they are needed."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._started = 0
        self._busy = 0
        self.is_closed = False
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._results: deque[tuple[Ended, Any, BaseException | None]] = deque()
        self._woken = False
        self._lock = threading.Lock()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run `function` in a thread and return what it returns, or raise what it raises.

        Cancelling takes effect only when the function has returned, so that
        a caller that counts threads or holds a lock never lets go too early.
        """
        pending = _Pending(self)
        self.start(function, pending.end)
        value, error = await pending
        if error is not None:
            raise error
        return value

    def start(self, function: Callable[[], Any], ended: Ended) -> None:
        """Run `function` in a thread, and tell of its end without a task that waits for it."""
        self._busy += 1
        if self._busy > self._started and self._started < self._size:
            self._started += 1
            threading.Thread(
                target=self._serve,
                args=(asyncio.get_running_loop(),),
                name=f"{self._name}-{self._started}",
                daemon=True,
            ).start()
        self._work.put((ended, function))

    def close(self) -> None:
        """Let idle threads end, and wait no longer for busy ones."""
        self.is_closed = True
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while (item := self._work.get()) is not None:
            ended, function = item
            value: Any = None
            error: BaseException | None = None
            try:
                # An empty context: what one call sets must not reach the next.
                value = contextvars.Context().run(function)
            except BaseException as raised:
                error = raised
            self._report(loop, (ended, value, error))
            # An idle thread must not keep a finished call's data alive.
            del item, ended, function, value, error

    def _report(
        self, loop: asyncio.AbstractEventLoop, outcome: tuple[Ended, Any, BaseException | None]
    ) -> None:
        with self._lock:
            self._results.append(outcome)
            if self._woken:
                return
            self._woken = True
        try:
            loop.call_soon_threadsafe(self._deliver, loop)
        except RuntimeError:
            return  # The loop is closed, and nothing waits for it.

    def _deliver(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            results, self._results = self._results, deque()
            self._woken = False
        for ended, value, error in results:
            self._busy -= 1
            try:
                ended(value, error)
            except Exception as unexpected:
                # The others must be told all the same.
                loop.call_exception_handler({"message": "an end not told", "exception": unexpected})
