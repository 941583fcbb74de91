"""Threads for evaluators that block, each call with a timeout."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import TypeVar, cast

from cbench_server.clocks.standstill import time_awake
from cbench_server.scoring.assessment import Unscorable, too_slow

T = TypeVar("T")

# What a function returned, and what it raised.
_Outcome = tuple[object, BaseException | None]


class EvaluatorThreads:
    """At most `size` calls at a time, each given up after `timeout` seconds.

    A thread cannot be stopped: one that is given up is left to end by itself,
    and another takes its place. The threads are daemons, so that an evaluator
    that never returns does not keep the process from ending.
    """

    def __init__(self, size: int, timeout: float) -> None:
        self._permits = asyncio.Semaphore(size)
        self._timeout = timeout
        self._idle: list[_Thread] = []

    async def run(self, evaluator: str, function: Callable[[], T]) -> T:
        """Return what the function returns, or raise what it raises, or Unscorable."""
        async with self._permits:
            thread = self._idle.pop() if self._idle else _Thread()
            try:
                async with time_awake(self._timeout):
                    result, error = await thread.call(function)
            except TimeoutError as late:
                thread.end()
                raise Unscorable(too_slow(evaluator, self._timeout)) from late
            except BaseException:
                thread.end()
                raise
            self._idle.append(thread)
        if error is not None:
            raise error
        return cast(T, result)

    def close(self) -> None:
        """Let idle threads end; busy ones end when their call does."""
        for thread in self._idle:
            thread.end()
        self._idle.clear()


async def in_own_thread(function: Callable[[], T]) -> T:
    """Return what a function returns whose thread may be left behind, also by a process that ends.

    Those of `asyncio.to_thread` are waited for at the end.
    """
    thread = _Thread()
    try:
        result, error = await thread.call(partial(copy_context().run, function))
    finally:
        thread.end()
    if error is not None:
        raise error
    return cast(T, result)


class _Thread:
    """One thread, which does one call after another."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="evaluator", daemon=True).start()

    async def call(self, function: Callable[[], object]) -> _Outcome:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_Outcome] = loop.create_future()

        def finish(outcome: _Outcome) -> None:
            if not done.done():
                done.set_result(outcome)

        def work() -> None:
            try:
                outcome: _Outcome = (function(), None)
            except BaseException as error:
                outcome = (None, error)
            # Once the loop is closed, no one waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(finish, outcome)

        self._calls.put(work)
        return await done

    def end(self) -> None:
        self._calls.put(None)

    def _serve(self) -> None:
        while (work := self._calls.get()) is not None:
            work()
