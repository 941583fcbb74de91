"""Asynchronous connections for synchronous callers, and retries for both."""

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from cbench_client.errors import RemoteFailure

T = TypeVar("T")

_FIRST_DELAY, _MAX_DELAY = 0.05, 2.0
_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


class Closable(Protocol):
    """Something with an end."""

    async def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on this module's own loop, from any thread, and wait for it."""
    future = asyncio.run_coroutine_threadsafe(work, _background_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _background_loop() -> asyncio.AbstractEventLoop:
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="cbench-client", daemon=True).start()
            _loops.append(loop)
        return _loops[0]


class PerLoop(Generic[C]):
    """One connection for each event loop that asks, since none may be shared."""

    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._connections: dict[asyncio.AbstractEventLoop, C] = {}
        self._lock = threading.Lock()

    def get(self) -> C:
        """Return the running loop's connection."""
        loop = asyncio.get_running_loop()
        with self._lock:
            # A loop that ended took its connection with it.
            for gone in [known for known in self._connections if known.is_closed()]:
                del self._connections[gone]
            if loop not in self._connections:
                self._connections[loop] = self._connect()
            return self._connections[loop]

    async def close_here(self) -> None:
        """Close the running loop's connection."""
        with self._lock:
            connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.close()

    def close(self) -> None:
        """Close the background loop's connection and wait for it; ask the others to close."""
        with self._lock:
            connections, self._connections = self._connections, {}
        for loop, connection in connections.items():
            if loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(connection.close(), loop)
                if loop in _loops:
                    closing.result()


async def with_retries(attempt: Callable[[float, int], Awaitable[T]], timeout: float) -> T:
    """Await `attempt(seconds left, its number)` until it succeeds or may not be repeated.

    Gives up, with the last failure, when `timeout` seconds have passed in all.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    number, delay = 1, _FIRST_DELAY
    while True:
        try:
            return await attempt(deadline - loop.time(), number)
        except RemoteFailure as failure:
            failure.attempts = number
            pause = max(failure.retry_delay or 0.0, delay * random.uniform(0.5, 1.0))
            if not failure.retryable or loop.time() + pause >= deadline:
                raise
            await asyncio.sleep(pause)
        number, delay = number + 1, min(delay * 2, _MAX_DELAY)
