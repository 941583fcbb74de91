"""Threads that work through calls one after another, and tell the loop of many ends at once.

Handing each call to a pool and waiting for it wakes two threads per call, which
takes longer than a short call. A crew has calls queued ahead, so a thread goes
from one to the next, and the loop finds what has gathered when it comes round.

A call's time counts from when a thread takes it up. A thread cannot be stopped:
one whose call is late is left to itself and another takes its place, unless too
many have been left already; then the calls that no thread can take up fail.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from cbench_server.clocks.standstill import was_stopped
from cbench_server.errors import CallFailed, said
from cbench_server.results import Failure

MAX_LEFT = 64
_STOP = None

Ended = Callable[[list[tuple[Any, Any]]], None]
"""Told of tokens that ended together, each with what its work returned or a CallFailed."""


class _Entry:
    __slots__ = ("deadline", "ended", "is_left", "timeout", "token", "work")

    def __init__(self, token: Any, work: Callable[[], Any], timeout: float, ended: Ended) -> None:
        self.token = token
        self.work = work
        self.timeout = timeout
        self.ended = ended
        self.deadline = 0.0
        self.is_left = False


class Crew:
    """At most `size` threads at work at once. Belongs to the event loop it is first used on."""

    def __init__(self, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: SimpleQueue[_Entry | None] = SimpleQueue()
        self._done: deque[tuple[_Entry, Any]] = deque()
        self._is_told = False
        self._threads = 0
        self._left = 0
        self._unfinished = 0
        self._running: set[_Entry] = set()
        # Held while a call stops being at work, by its own end or by being late.
        self._ending = threading.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._look_at = 0.0

    def submit(
        self, calls: list[tuple[Any, Callable[[], Any]]], timeout: float, ended: Ended
    ) -> None:
        """Queue work, each piece with a token that says what it is for."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        self._unfinished += len(calls)
        for token, work in calls:
            self._queue.put(_Entry(token, work, timeout, ended))
        while self._threads < min(self._size, self._unfinished):
            self._add_thread()
        self._watch(timeout)

    def resize(self, size: int) -> None:
        """Have at most so many threads at work, once those beyond have done what is queued."""
        self._size = size
        while self._threads > size:
            self._threads -= 1
            self._queue.put(_STOP)
        while self._loop is not None and self._threads < min(size, self._unfinished):
            self._add_thread()

    def close(self) -> None:
        """Let the threads end once they are idle."""
        if self._timer is not None:
            self._timer.cancel()
        for _ in range(self._threads):
            self._queue.put(_STOP)

    def _add_thread(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name=f"cbench-{self._name}", daemon=True).start()

    def _work(self) -> None:
        loop = self._loop
        assert loop is not None
        take, running, done = self._queue.get, self._running, self._done
        while (entry := take()) is not _STOP:
            entry.deadline = time.monotonic() + entry.timeout
            with self._ending:
                running.add(entry)
            try:
                outcome = entry.work()
            except CallFailed as error:
                outcome = error
            except BaseException as error:
                outcome = CallFailed(Failure("daemon", "INTERNAL", said(error)))
            with self._ending:
                running.discard(entry)
            done.append((entry, outcome))
            if not self._is_told:
                self._is_told = True
                try:
                    loop.call_soon_threadsafe(self._tell)
                except RuntimeError:
                    return  # The loop is closed, and nothing waits for it.
            if entry.is_left:
                return

    def _tell(self) -> None:
        self._is_told = False
        told: dict[Ended, list[tuple[Any, Any]]] = {}
        while self._done:
            entry, outcome = self._done.popleft()
            if entry.is_left:
                self._left -= 1
            else:
                told.setdefault(entry.ended, []).append((entry.token, outcome))
        for ended, pairs in told.items():
            self._unfinished -= len(pairs)
            ended(pairs)

    # Deadlines: looked after by one timer, so that a call costs none.

    def _watch(self, timeout: float) -> None:
        if self._timer is None and self._unfinished:
            assert self._loop is not None
            self._look_at = self._loop.time() + min(1.0, timeout / 4)
            self._timer = self._loop.call_at(self._look_at, self._look, timeout)

    def _look(self, timeout: float) -> None:
        self._timer = None
        now = time.monotonic()
        assert self._loop is not None
        behind = self._loop.time() - self._look_at
        with self._ending:
            for entry in self._running if was_stopped(behind) else ():
                entry.deadline += behind
            late = [entry for entry in self._running if entry.deadline <= now]
            for entry in late:
                self._running.discard(entry)
                entry.is_left = True
        for entry in late:
            self._left += 1
            self._threads -= 1
            if self._left < MAX_LEFT and self._threads < self._size:
                self._add_thread()
            self._fail(entry, f"did not answer within {entry.timeout:g}s")
        if self._threads <= 0 and self._left >= MAX_LEFT:
            self._fail_queued()
        self._watch(timeout)

    def _fail(self, entry: _Entry, what: str) -> None:
        self._unfinished -= 1
        message = f'system "{self._name}" {what}'
        failure = CallFailed(Failure("system", "DEADLINE_EXCEEDED", message))
        entry.ended([(entry.token, failure)])

    def _fail_queued(self) -> None:
        while not self._queue.empty():
            entry = self._queue.get()
            if entry is not None:
                self._fail(entry, f"has {self._left} calls that never returned; no more are made")
