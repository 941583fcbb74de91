"""Locks that say which process holds a run; the kernel drops them when a process dies.

They need a local file system; a store on NFS is not supported.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cbench_server.errors import UnknownRun
from cbench_server.storage.database import explained

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file, waiting for it if need be."""
    with explained(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


class RunLocks:
    """The locks of runs, as files in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._held: set[str] = set()

    def is_held_here(self, run_id: str) -> bool:
        """Tell whether this process holds the run."""
        return run_id in self._held

    @contextmanager
    def hold(self, run_id: str) -> Iterator[bool]:
        """Hold the run while the context lasts; False if someone holds it already."""
        descriptor = self._acquire(run_id)
        if descriptor is None:
            yield False
            return
        self._held.add(run_id)
        try:
            yield True
        finally:
            self._held.discard(run_id)
            os.close(descriptor)

    def _acquire(self, run_id: str) -> int | None:
        path = self._path(run_id)
        while True:
            with explained(path):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            # Between open and flock the holder may have deleted the run and this file with it.
            if _is_file(descriptor, path):
                return descriptor
            os.close(descriptor)

    def remove(self, run_id: str) -> None:
        """Remove the lock's file; only who holds the lock may do so."""
        self._path(run_id).unlink(missing_ok=True)

    def _path(self, run_id: str) -> Path:
        if not is_run_id(run_id):
            raise UnknownRun(run_id)
        return self._directory / f"{run_id}.lock"


def is_run_id(run_id: str) -> bool:
    """Tell whether a run may be called so; its name becomes that of a file."""
    return _RUN_ID.fullmatch(run_id) is not None


def _is_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
