"""A door for synchronous callers into code that is async inside."""

import asyncio
import functools
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from anywhere, also from inside a running event loop.

    It runs on one loop shared by the whole process, so that connections are
    kept between calls; the calling thread waits.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, _shared_loop(os.getpid()))
    try:
        return future.result()
    finally:
        future.cancel()


_starting = threading.Lock()


def _shared_loop(pid: int) -> asyncio.AbstractEventLoop:
    with _starting:
        return _start_loop(pid)


# Known by the process id: in a forked child the parent's thread does not exist.
@functools.cache
def _start_loop(pid: int) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="cbench-chat", daemon=True).start()
    return loop
