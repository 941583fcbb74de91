"""Locks that say which process owns a run; the kernel drops them when a process dies.

They need a local file system; a store on NFS is not supported.
"""

import fcntl
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from cbench_server.errors import LostClaim, UnknownRun
from cbench_server.runs.ownership import Claim
from cbench_server.storage.connection import Connection
from cbench_server.storage.database import explained
from cbench_server.storage.leftovers import is_file, untidied

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class RunLocks:
    """Claims to runs as locked files in one directory, each there as long as its claim.

    The kernel lets one process at a time hold a file, so what epochs must tell apart are
    claims of one process. They begin with the clock, so that those of a later process are greater.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: dict[str, tuple[Claim, int]] = {}
        self._epoch = time.time_ns() // 1_000_000

    async def acquire(self, run_id: str) -> Claim | None:
        """See Ownership."""
        descriptor = self._lock(run_id)
        if descriptor is None:
            return None
        self._epoch += 1
        claim = Claim(run_id, self._epoch)
        self._held[run_id] = (claim, descriptor)
        return claim

    async def renew(self, claim: Claim) -> bool:
        """See Ownership. The kernel keeps the lock; only its file can be lost."""
        try:
            return self._stands(claim)
        except OSError:
            return True  # The disk is away; each commit asks again.

    async def release(self, claim: Claim) -> None:
        """See Ownership."""
        with suppress(OSError):  # Whoever tidies up finds it, once it can be removed.
            if self._stands(claim):
                self.remove(claim.run_id)
        held, descriptor = self._held.get(claim.run_id, (None, -1))
        if held == claim:
            del self._held[claim.run_id]
            os.close(descriptor)

    def is_mine(self, run_id: str) -> bool:
        """See Ownership."""
        return run_id in self._held

    def check(self, claim: Claim, connection: Connection) -> None:
        """Raise LostClaim unless a claim stands; called within the transaction that needs it."""
        if not self._stands(claim):
            raise lost(claim)

    def _stands(self, claim: Claim) -> bool:
        held, descriptor = self._held.get(claim.run_id, (None, -1))
        return held == claim and is_file(descriptor, self._path(claim.run_id))

    def _lock(self, run_id: str) -> int | None:
        path = self._path(run_id)
        while True:
            with explained(path), untidied(self._directory):
                self._directory.mkdir(mode=0o700, exist_ok=True)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(descriptor)
                    return None
            # Between open and flock the holder may have deleted the run and this file with it.
            if is_file(descriptor, path):
                return descriptor
            os.close(descriptor)

    def remove(self, run_id: str) -> None:
        """Remove the lock's file; only who holds the lock may do so."""
        self._path(run_id).unlink(missing_ok=True)

    def _path(self, run_id: str) -> Path:
        if not is_run_id(run_id):
            raise UnknownRun(run_id)
        return self._directory / f"{run_id}.lock"


def lost(claim: Claim) -> LostClaim:
    """Say that a claim does not stand any more."""
    return LostClaim(
        f'run "{claim.run_id}" has another owner by now, or none; what the one of epoch '
        f"{claim.epoch} wanted to store is dropped."
    )


def is_run_id(run_id: str) -> bool:
    """Tell whether a run may be called so; its name becomes that of a file."""
    return _RUN_ID.fullmatch(run_id) is not None
