"""Leftovers of processes that were killed: lock files and half-written files.

Who writes a file or holds a run has a lock, which the kernel drops when the process dies. So
a file whose lock is free is nobody's.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from cbench_server.durable import failpoints

_LOCKS = "locks"
_GATE = "tidy.lock"

# Half-written files, by folder; their writers hold a lock on each.
_PARTS = {
    "uploads": "*.part",
    "imports": "*.part",
    "judge-checks": ".new-*",
    "launched": "*.part",
    "asked": "*.part",
}


def remove_leftovers(home: Path) -> list[str]:
    """Remove what the dead left under `home`; return the names of the files."""
    return [*_remove_free(home, _LOCKS, "*.lock")] + [
        name for folder, pattern in _PARTS.items() for name in _remove_free(home, folder, pattern)
    ]


def untidied(locks: Path) -> AbstractContextManager[None]:
    """Keep those who tidy up away from a folder of locks.

    They lock a file to see whether it is free: who came to claim it just then would be told that
    its run has an owner.
    """
    return held(locks.with_name(_GATE), fcntl.LOCK_SH)


@contextmanager
def held(path: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold a lock file, waiting for it if need be."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def is_held(home: Path, run_id: str) -> bool:
    """Tell whether a living process holds a run; nobody who claims it meanwhile is refused."""
    with suppress(OSError), held(home / _GATE):
        descriptor = os.open(home / _LOCKS / f"{run_id}.lock", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def _remove_free(home: Path, folder: str, pattern: str) -> Iterator[str]:
    for path in sorted((home / folder).glob(pattern)):
        alone = held(home / _GATE) if folder == _LOCKS else nullcontext()
        with suppress(OSError), alone:  # Gone already, or not ours.
            if remove_if_free(path):
                yield f"{folder}/{path.name}"


def new_part(folder: Path, *, prefix: str = "", suffix: str = "") -> tuple[int, Path]:
    """Make a file to write, and lock it for as long as its descriptor is open."""
    while True:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=suffix)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_file(descriptor, Path(name)):
            return descriptor, Path(name)
        os.close(descriptor)  # It was taken for a leftover before it was locked.


def remove_if_free(path: Path) -> bool:
    """Remove a file that no living process has locked; who opens it meanwhile notices."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between the two, its holder may have removed it, and another made one of that name.
        if not is_file(descriptor, path):
            return False
        os.unlink(path)
        failpoints.hit("prune.leftover")
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def is_file(descriptor: int, path: Path) -> bool:
    """Tell whether the open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
