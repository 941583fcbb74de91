"""Leases: claims to runs that are kept in the database, on its clock, and lapse unless renewed.

A claim is checked within each commit that carries it, by its epoch, and its row is held until the
commit ends. So who takes a run over comes before all of a commit or after it.

What was acknowledged may be gone nevertheless, after a failover to a standby that had not heard of
it. An owner who finds less of its run than it stored gives the run back, to be taken up from what
there is; to go on would leave holes.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from cbench_server.durable import failpoints
from cbench_server.errors import LostClaim, StoreError, UnknownRun
from cbench_server.runs.ownership import Claim, process_name
from cbench_server.storage import postgresql_statements as sql
from cbench_server.storage.connection import Connection, explained_by
from cbench_server.storage.locks import is_run_id, lost
from cbench_server.storage.postgres.connection import PostgresConnection
from cbench_server.storage.postgres.database import PostgresDatabase

T = TypeVar("T")

log = logging.getLogger(__name__)


class Leases:
    """The claims of one process, which `pulse.py` renews. See Ownership for its methods."""

    def __init__(self, database: PostgresDatabase, seconds: float) -> None:
        self._database = database
        self.seconds = seconds
        self.daemon = os.urandom(8).hex()
        self.name = process_name()
        self._held: dict[str, Claim] = {}
        self._stored: dict[Claim, tuple[int, int]] = {}
        self._pool = ThreadPoolExecutor(1, "cbench-claim")
        self._connection: PostgresConnection | None = None
        self.released: Callable[[], None] = lambda: None
        """Called when a claim was given back, so that others may have it at once."""
        self.claimed: Callable[[str], object] = lambda _: None
        """Called with a run that has come to this process."""

    async def acquire(self, run_id: str) -> Claim | None:
        """See Ownership."""
        if not is_run_id(run_id):
            raise UnknownRun(run_id)
        if run_id in self._held:
            return None
        row = await self._ask(
            lambda connection: connection.execute(
                sql.CLAIM_RUN, self._mine() | {"run_id": run_id}
            ).fetchone()
        )
        if row is None or run_id in self._held:
            return None
        failpoints.hit("lease.claimed")
        claim = self._held[run_id] = Claim(run_id, int(row[0]))
        self.claimed(run_id)
        return claim

    async def renew(self, claim: Claim) -> bool:
        """See Ownership. The pulse renews all claims at once, and forgets those that are lost."""
        return self._held.get(claim.run_id) == claim

    async def release(self, claim: Claim) -> None:
        """See Ownership. A lease that cannot be given back lapses."""
        if self._held.get(claim.run_id) != claim:
            return
        self._forget(claim)
        keys = self._keys(claim)
        try:
            await self._ask(lambda connection: connection.execute(sql.RELEASE_RUN, keys))
            failpoints.hit("lease.released")
            self.released()
        except StoreError as error:
            log.warning("the lease of run %s is left to lapse: %s", claim.run_id, error)

    def is_mine(self, run_id: str) -> bool:
        """See Ownership."""
        return run_id in self._held

    def check(self, claim: Claim, connection: Connection) -> None:
        """Raise LostClaim unless a claim stands; it stands then until the transaction ends."""
        found = connection.execute(sql.HOLD_CLAIM, self._keys(claim)).fetchone()
        if found is None:
            self._forget(claim)
            raise lost(claim)
        stored = self._stored.get(claim, (0, 0))
        if (found[0] or 0) < stored[0] or (found[1] or 0) < stored[1]:
            raise LostClaim(
                f'{self._database.name} has lost events of run "{claim.run_id}" that were '
                f"stored: it has {found[0]} of {stored[0]}, as a standby has that took over too "
                "early. The run is taken up again from what is there."
            )

    def stored(self, claim: Claim | None, last_seq: int = 0, examples: int = 0) -> None:
        """Note how much of a run is acknowledged."""
        if claim is not None and self._held.get(claim.run_id) == claim:
            before = self._stored.get(claim, (0, 0))
            self._stored[claim] = max(before[0], last_seq), max(before[1], examples)

    def remove(self, run_id: str) -> None:
        """Do nothing: a lease is given back when its run is let go."""

    @property
    def held(self) -> Mapping[str, Claim]:
        """The claims as they are now."""
        return dict(self._held)

    def keep(self, connection: Connection, revision: str) -> None:
        """Renew this process's entry and all its leases; forget those that are lost."""
        before = self.held
        entry = self._mine() | {"name": self.name, "revision": revision}
        connection.execute(sql.ENTER_DAEMON, entry)
        failpoints.hit("lease.entered")
        renewed = dict(connection.execute(sql.RENEW_LEASES, self._mine()).fetchall())
        failpoints.hit("lease.renewed")
        for run_id, claim in before.items():
            if renewed.get(run_id) != claim.epoch:
                self._forget(claim)

    def _forget(self, claim: Claim) -> None:
        self._stored.pop(claim, None)
        if self._held.get(claim.run_id) == claim:
            del self._held[claim.run_id]

    def _keys(self, claim: Claim) -> dict[str, Any]:
        return {"run_id": claim.run_id, "epoch": claim.epoch, "daemon": self.daemon}

    def _mine(self) -> dict[str, Any]:
        return {"daemon": self.daemon, "seconds": self.seconds}

    async def _ask(self, work: Callable[[PostgresConnection], T]) -> T:
        def asked() -> T:
            with explained_by(self._database):
                if self._connection is None:
                    self._connection = self._database.connect()
                return work(self._connection)

        return await asyncio.get_running_loop().run_in_executor(self._pool, asked)

    def close(self) -> None:
        """Give back what is held, and end the connection."""
        self._pool.shutdown()
        if self._connection is not None:
            self._connection.close()
