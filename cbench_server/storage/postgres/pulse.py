"""Pulse of a process that uses a shared store: renews its leases, and passes word of new events.

One thread with a connection of its own. Words are sent after a commit and some at a time: within a
commit they would make all the commits of a database wait for one another.
"""

import asyncio
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import psycopg

from cbench_server.durable import failpoints
from cbench_server.storage import postgresql_statements as sql
from cbench_server.storage.postgres.connection import PostgresConnection
from cbench_server.storage.postgres.database import PostgresDatabase
from cbench_server.storage.postgres.leases import Leases

log = logging.getLogger(__name__)

_CHANNEL = "cbench_events"
_NOTIFY = "SELECT pg_notify(%s, run_id) FROM unnest(%s::text[]) AS run_id"
_WORDS_EVERY_S = 0.05
_AGAIN_AFTER_S = 1.0


class Pulse:
    """Beats until it is closed. `heard` is called on the loop with runs that others wrote."""

    def __init__(
        self,
        database: PostgresDatabase,
        leases: Leases,
        renew_seconds: float,
        heard: Callable[[Iterable[str]], None],
    ) -> None:
        self._database = database
        self._leases = leases
        self._renew_seconds = renew_seconds
        self._heard = heard
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answered = time.monotonic()
        self._words: set[str] = set()
        self._lock = threading.Lock()
        self._waking, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._is_closing = False
        self._connection: PostgresConnection | None = None
        self._renewed = 0.0
        self._sent = 0.0
        self._is_told = False
        self._beat_once()
        self._thread = threading.Thread(target=self._run, name="cbench-pulse", daemon=True)
        self._thread.start()

    def belongs_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Name the loop for which leases are renewed; one that hangs has them lapse."""
        if self._loop is not loop:
            self._loop = loop
            self._answered = time.monotonic()

    def tell(self, run_ids: Iterable[str]) -> None:
        """Have other daemons know that runs have new events."""
        with self._lock:
            is_first = not self._words
            self._words.update(run_ids)
            if is_first and not self._is_closing:
                self._wake_up()

    def _wake_up(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._wake, b"\0")

    def _run(self) -> None:
        while not self._is_closing:
            try:
                self._beat_once()
                self._wait()
                self._is_told = False
            except psycopg.Error as error:
                if not self._is_told:
                    log.warning("%s", self._database.explain(error))
                    self._is_told = True
                self._let_go()
                time.sleep(_AGAIN_AFTER_S)
        with suppress(psycopg.Error):
            self._leave()
        self._let_go()

    def _beat_once(self) -> None:
        """Do what is due."""
        if self._connection is None:
            self._connection = self._database.connect()
            # Words need not outlast a crash, so they wait for no disk.
            self._connection.execute("SET synchronous_commit = off")
            self._connection.execute(f"LISTEN {_CHANNEL}")
            self._renewed = 0.0
        now = time.monotonic()
        if now >= self._renewed + self._renew_seconds and self._is_loop_alive(now):
            self._leases.keep(self._connection, sql.HEAD_REVISION)
            self._renewed = now
        if self._words and now >= self._sent + _WORDS_EVERY_S:
            with self._lock:
                words, self._words = sorted(self._words), set()
            self._connection.execute(_NOTIFY, (_CHANNEL, words))
            self._sent = now

    def _is_loop_alive(self, now: float) -> bool:
        if self._loop is None:
            return True
        with suppress(RuntimeError):  # It is closed, and the store will be.
            self._loop.call_soon_threadsafe(self._answer)
        return now < self._answered + self._leases.seconds

    def _answer(self) -> None:
        self._answered = time.monotonic()

    def _wait(self) -> None:
        """Wait for words of others, for some to send, or for the next renewal."""
        assert self._connection is not None
        raw = self._connection.raw
        until = self._renewed + self._renew_seconds
        if self._words:
            until = min(until, self._sent + _WORDS_EVERY_S)
        patience = max(0.0, until - time.monotonic())
        ready, _, _ = select.select([raw.fileno(), self._waking], [], [], min(patience, 1.0))
        if self._waking in ready:
            os.read(self._waking, 4096)
        mine = raw.info.backend_pid
        found = {each.payload for each in raw.notifies(timeout=0) if each.pid != mine}
        if found and self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._heard, found)

    def _leave(self) -> None:
        if self._connection is not None:
            mine = {"daemon": self._leases.daemon}
            self._connection.execute(sql.RELEASE_ALL, mine)
            failpoints.hit("leave.released")
            self._connection.execute(sql.LEAVE_DAEMON, mine)
            failpoints.hit("leave.left")
            self._connection.execute(sql.FORGET_DAEMONS)

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Give all leases back and end; blocks until that is done."""
        if self._is_closing:
            return
        self._is_closing = True
        self._wake_up()
        self._thread.join()
        with self._lock:
            os.close(self._wake)
            os.close(self._waking)
