"""A report into a file, whole or not at all, or onto stdout."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from cbench_server.cli.exits import UsageError

STDOUT = "-"


def write_file(path: Path, parts: Iterable[str | bytes]) -> int:
    """Write the parts and return how many bytes they are; what was there stays until the end."""
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder. Name a file in it.")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            size = sum(file.write(_encoded(part)) for part in parts)
        # mkstemp keeps a file from everybody else, which a report need not be.
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return size


def write_stdout(parts: Iterable[str | bytes]) -> None:
    """Write the parts as they are made."""
    for part in parts:
        sys.stdout.buffer.write(_encoded(part))
    sys.stdout.buffer.flush()


def size_text(size: int) -> str:
    """Say how large a file is: `812 kB`, `3.4 MB`."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, size // 1000):,} kB"


def _encoded(part: str | bytes) -> bytes:
    return part.encode("utf-8", "replace") if isinstance(part, str) else part


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
