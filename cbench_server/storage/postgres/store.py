"""The store of several daemons: PostgreSQL, with leases for locks."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from cbench_server.events import StoredEvent
from cbench_server.runs.ownership import Claim
from cbench_server.runs.store import SpooledExample
from cbench_server.storage.connection import Connection, explained_by
from cbench_server.storage.opening import LEASE_SECONDS
from cbench_server.storage.postgres.address import Address
from cbench_server.storage.postgres.database import PostgresDatabase
from cbench_server.storage.postgres.leases import Leases
from cbench_server.storage.postgres.migrate import check_revision, migrate
from cbench_server.storage.postgres.pulse import Pulse
from cbench_server.storage.postgres.uploads import PostgresUploads
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.uploads import UploadStore

T = TypeVar("T")

# A word that is no id of a run: there may be something to do.
_LOOK = "?"


class PostgresStore(SqlStore):
    """A store in the database at an address."""

    is_shared = True
    # Beneath the words that daemons send one another.
    poll_seconds = 2.0

    @classmethod
    def open(
        cls,
        address: Address,
        clock: Callable[[], float] = time.time,
        max_bytes: int = 0,
        lease_seconds: float = LEASE_SECONDS,
    ) -> "PostgresStore":
        """Open the store, making its tables if need be.

        Raises `StoreTooNew`, `StoreAway` or `StoreError`, saying what to do.
        """
        database = PostgresDatabase(address)
        with explained_by(database):
            with closing(database.connect()) as connection:
                migrate(connection, database)
                store = cls(database, clock, max_bytes, lease_seconds)
                try:
                    # Who upgrades a store waits for those who have entered it.
                    check_revision(connection, database)
                except BaseException:
                    store.shut()
                    raise
            return store

    def __init__(
        self,
        database: PostgresDatabase,
        clock: Callable[[], float],
        max_bytes: int,
        lease_seconds: float,
    ) -> None:
        self._shared = database
        self._leases = Leases(database, lease_seconds)
        self._pulse = Pulse(database, self._leases, lease_seconds / 3, self._heard)
        super().__init__(database, self._leases, clock, max_bytes)
        self._leases.released = self.tell_others
        # What was here of a run that others had meanwhile, or that was lost, is not its end.
        self._leases.claimed = self._tails.forget

    def uploads(self, home: Path, max_upload_bytes: int, max_total_bytes: int) -> UploadStore:
        """Return the uploads, which are in the database too."""
        return PostgresUploads(self._shared, home, max_upload_bytes, max_total_bytes)

    async def append(
        self,
        run_id: str,
        events: Sequence[StoredEvent],
        *,
        update: Mapping[str, Any] | None = None,
        claim: Claim | None = None,
    ) -> int:
        """See RunStore."""
        last_seq = await super().append(run_id, events, update=update, claim=claim)
        self._leases.stored(claim, last_seq)
        return last_seq

    async def add_examples(
        self,
        run_id: str,
        examples: Sequence[SpooledExample],
        *,
        complete: bool = False,
        claim: Claim | None = None,
    ) -> None:
        """See RunStore."""
        await super().add_examples(run_id, examples, complete=complete, claim=claim)
        if examples:
            self._leases.stored(claim, examples=examples[-1].ordinal + 1)

    def committed(self, run_ids: Iterable[str]) -> None:
        """Tell those who wait here, and other daemons, that runs have new events."""
        super().committed(run_ids)
        self._pulse.tell(run_ids)

    def tell_others(self) -> None:
        """See SqlStore."""
        self._pulse.tell([_LOOK])

    def _heard(self, words: Iterable[str]) -> None:
        run_ids = [word for word in words if word != _LOOK]
        super().committed(run_ids)
        if len(run_ids) < len(list(words)):
            self.intents.heard()

    async def unfinished(self) -> list[str]:
        """Return the ids of runs that are not over and have no owner, oldest first."""
        return await self.read(_free_runs)

    async def _in_pool(self, work: Callable[[], T]) -> T:
        self._pulse.belongs_to(asyncio.get_running_loop())
        return await super()._in_pool(work)

    def shut(self) -> None:
        """Close it, blocking: first what writes, then the leases, then the rest."""
        super().shut()
        self._pulse.close()
        self._leases.close()


def _free_runs(connection: Connection) -> list[str]:
    return [run_id for (run_id,) in connection.execute(connection.sql.FREE_RUNS).fetchall()]
