"""Writer: the thread that writes, and groups what is asked for at about the same time.

A sync to disk costs much the same however little it writes, so rows wait for
company: half a millisecond after a pause, and 4 ms after the last group where
they follow closely. What is not a row, such as a change of state, does not wait
and takes along all that is queued.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cbench_server.durable import failpoints
from cbench_server.errors import StoreError
from cbench_server.storage.connection import Connection, Database, over_quota
from cbench_server.storage.transaction import Transaction

T = TypeVar("T")

GROUP_ROWS, GROUP_BYTES = 256, 1_000_000
_FIRST_WAIT, _NEXT_WAIT = 0.0005, 0.004
# A backlog is written in larger groups, which cost less per row.
_MAX_ROWS, _MAX_BYTES = 1024, 8_000_000
QUEUE_BYTES = 32_000_000
_TRIES = 5


@dataclass(slots=True, eq=False)
class _Job:
    work: Callable[[Transaction], Any]
    future: "asyncio.Future[Any]"
    rows: int
    size: int
    grows: bool
    queued: float = field(default_factory=time.monotonic)


class Writer:
    """Carries out writes in groups. `on_commit` gets the runs that have new events."""

    def __init__(
        self,
        database: Database,
        on_commit: Callable[[dict[str, int]], None],
        max_bytes: int = 0,
    ) -> None:
        """`max_bytes` is the size at which the file takes nothing more that grows it; 0 is none."""
        self._database = database
        self._max_bytes = max_bytes
        self._on_commit = on_commit
        self._opened: Connection | None = None
        self._wake = threading.Condition()
        self._queue: deque[_Job] = deque()
        self._queued_rows = 0
        self._queued_size = 0
        self._is_urgent = False
        self._is_closing = False
        self._grouped = 0.0
        self.unfinished_size = 0
        """Bytes queued or being written; at most QUEUE_BYTES, or one longer write."""
        self._turn = asyncio.Lock()
        self._space: asyncio.Future[None] | None = None
        self._thread = threading.Thread(target=self._run, name="cbench-write", daemon=True)
        self._thread.start()

    async def write(
        self,
        work: Callable[[Transaction], T],
        *,
        rows: int = 0,
        size: int = 0,
        grows: bool = False,
    ) -> T:
        """Do `work` in a transaction and return its result once that is on disk.

        What `grows` the file is refused with `StoreFull` once the quota is used up.

        `work` may run again if another of its group fails. Waits while too
        many bytes are queued. Cancelling the caller does not undo the write.
        """
        loop = asyncio.get_running_loop()
        # In turn, so that a long write is not kept out by short ones for ever.
        async with self._turn:
            while self.unfinished_size and self.unfinished_size + size > QUEUE_BYTES:
                self._space = loop.create_future()
                await self._space
        job = _Job(work, loop.create_future(), rows, size, grows)
        self._enqueue(job)
        self.unfinished_size += size
        result: T = await job.future
        return result

    def _enqueue(self, job: _Job) -> None:
        with self._wake:
            if self._is_closing:
                raise StoreError(f"the store {self._database.name} is closed.")
            self._queue.append(job)
            self._queued_rows += job.rows
            self._queued_size += job.size
            self._is_urgent |= job.rows == 0
            if len(self._queue) == 1 or self._is_group():
                self._wake.notify()

    def _is_group(self) -> bool:
        return (
            self._is_urgent
            or self._is_closing
            or self._queued_rows >= GROUP_ROWS
            or self._queued_size >= GROUP_BYTES
        )

    def _run(self) -> None:
        while group := self._next_group():
            self._write(group)

    def _next_group(self) -> list[_Job]:
        with self._wake:
            while not self._queue and not self._is_closing:
                self._wake.wait()
            while self._queue and not self._is_group():
                until = max(self._queue[0].queued + _FIRST_WAIT, self._grouped + _NEXT_WAIT)
                patience = until - time.monotonic()
                if patience <= 0:
                    break
                self._wake.wait(patience)
            group: list[_Job] = []
            rows = size = 0
            while self._queue and rows < _MAX_ROWS and size < _MAX_BYTES:
                job = self._queue.popleft()
                group.append(job)
                rows, size = rows + job.rows, size + job.size
            if rows:
                self._grouped = time.monotonic()
            self._queued_rows -= rows
            self._queued_size -= size
            self._is_urgent = any(job.rows == 0 for job in self._queue)
            return group

    def _write(self, group: Sequence[_Job]) -> None:
        if self._max_bytes and any(job.grows for job in group) and self._is_over():
            refused = [job for job in group if job.grows]
            self._deliver(
                refused, [over_quota(self._database.name, self._max_bytes)] * len(refused), {}
            )
            group = [job for job in group if not job.grows]
            if not group:
                return
        try:
            try:
                results, advanced = self._commit_in_turn(group)
            except self._database.conflicts:
                results, advanced = self._commit_in_turn(group, careful=True)
        except Exception as error:
            is_theirs = isinstance(error, self._database.errors)
            is_away = is_theirs and not self._database.may_be_of_one(error)
            if is_away or len(group) == 1:
                known = self._database.explain(error) if is_theirs else error
                self._deliver(group, [known] * len(group), {})
            else:
                # One of them is at fault; the others must not suffer for it.
                for job in group:
                    self._write([job])
        else:
            self._deliver(group, results, advanced)

    @property
    def _connection(self) -> Connection:
        if self._opened is None:
            self._opened = self._database.connect()
        return self._opened

    def _begin(self) -> None:
        try:
            self._connection.begin_writing()
        except self._database.errors as error:
            if self._database.needs_another(error):
                self._disconnect()
            raise

    def _disconnect(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _is_over(self) -> bool:
        try:
            return self._connection.is_over(self._max_bytes)
        except self._database.errors:
            return False  # The write itself will say what is wrong.

    def _commit_in_turn(
        self, group: Sequence[_Job], *, careful: bool = False
    ) -> tuple[list[Any], dict[str, int]]:
        """Commit a group, again where another process's transaction was in its way."""
        for _ in range(_TRIES - 1):
            try:
                return self._commit(group, careful=careful)
            except self._database.errors as error:
                if not self._database.is_passing(error):
                    raise
        return self._commit(group, careful=careful)

    def _commit(
        self, group: Iterable[_Job], *, careful: bool = False
    ) -> tuple[list[Any], dict[str, int]]:
        self._begin()
        try:
            transaction = Transaction(self._connection, careful=careful)
            results = [job.work(transaction) for job in group]
            advanced = transaction.flush()
            failpoints.hit("commit.before")
            self._connection.commit()
            failpoints.hit("commit.after")
        except BaseException:
            # On a full disk SQLite has rolled back by itself already.
            if self._connection.in_transaction:
                self._connection.rollback()
            raise
        return results, advanced

    def _deliver(
        self, group: Sequence[_Job], results: Sequence[Any], advanced: dict[str, int]
    ) -> None:
        loop = group[0].future.get_loop()
        with suppress(RuntimeError):  # The loop is closed, and all that waited with it.
            loop.call_soon_threadsafe(self._finish, group, results, advanced)

    def _finish(
        self, group: Sequence[_Job], results: Sequence[Any], advanced: dict[str, int]
    ) -> None:
        for job, result in zip(group, results, strict=True):
            self.unfinished_size -= job.size
            if job.future.done():
                continue
            if isinstance(result, Exception):
                job.future.set_exception(result)
            else:
                job.future.set_result(result)
        if self._space is not None and not self._space.done():
            self._space.set_result(None)
        self._on_commit(advanced)

    def close(self) -> None:
        """Write what is queued, then close the connection; blocks until that is done."""
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        if self._opened is not None:
            self._opened.stop_waiting()
        self._thread.join()
        if self._opened is not None:
            self._opened.empty_log()
            self._opened.close()
