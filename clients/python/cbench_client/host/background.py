"""An event loop in its own thread, and signals that end it."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

GRACE_S = 20.0
# What is left after the grace: closing sockets and the loop.
_MARGIN_S = 5.0
# A signal wakes a waiting thread only if it lands on that thread, and after the
# wait has begun; so waits are cut into pieces, between which handlers run.
_PIECE_S = 0.2


class LoopThread:
    """Runs one coroutine to its end on its own loop."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.result: Future[None] = Future()

    def start(self, main: Coroutine[Any, Any, None]) -> None:
        """Start the thread; `result` holds how it ended."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, args=(self._loop, main), name=self._name, daemon=True
        )
        self._thread.start()

    def call(self, function: Callable[[], object]) -> None:
        """Call a function on the loop. Nothing happens before its start and after its end."""
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function)

    def join(self, grace: float) -> None:
        """Wait for the end, a little longer than `grace`."""
        end = time.monotonic() + grace + _MARGIN_S
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < end:
            self._thread.join(_PIECE_S)

    def _run(self, loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, None]) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(main)
        except BaseException as error:
            self.result.set_exception(error)
        else:
            self.result.set_result(None)
        finally:
            # User code that ignores its cancellation gets a second, no more.
            if tasks := asyncio.all_tasks(loop):
                for task in tasks:
                    task.cancel()
                loop.run_until_complete(asyncio.wait(tasks, timeout=1.0))
            loop.close()


def wait_until_done(future: Future[Any]) -> None:
    """Wait for a future, and let signal handlers run meanwhile."""
    while not future.done():
        futures.wait([future], _PIECE_S)


@contextmanager
def ending_on_signals(end: Callable[[], object]) -> Iterator[None]:
    """Call `end` on the first SIGINT or SIGTERM, and exit at once on the second.

    Outside the main thread, where Python has no signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = False
    reading, writing = os.pipe()

    def handle(number: int, frame: FrameType | None) -> None:
        # Nothing that takes a lock: the code that it interrupts may hold that very lock.
        nonlocal seen
        if seen:
            os._exit(128 + number)
        seen = True
        os.write(writing, b"!")

    def wait_for_signal() -> None:
        if os.read(reading, 1):
            # Nobody may read it any more.
            with suppress(OSError):
                print("finishing the calls in progress; once more to stop at once", file=sys.stderr)
            end()

    waiting = threading.Thread(target=wait_for_signal, name="cbench-signals", daemon=True)
    waiting.start()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writing)
        waiting.join()
        os.close(reading)
