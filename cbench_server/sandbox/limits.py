"""Limits of a jailed process: what it may use, and what it may still touch of its parent's."""

import contextlib
import os
import resource

MEMORY_MB = 1024
DISK_MB = 64
TESTER_MEMORY_MB = 2048
_STACK_MB = 64
_OPEN_FILES = 64


def limit_resources(memory_mb: int, file_mb: int) -> None:
    """Set the limits that the kernel keeps for this process."""
    mb = 1 << 20
    for kind, soft, hard in (
        (resource.RLIMIT_AS, memory_mb * mb, memory_mb * mb),
        (resource.RLIMIT_FSIZE, file_mb * mb, file_mb * mb),
        (resource.RLIMIT_STACK, _STACK_MB * mb, _STACK_MB * mb),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, _OPEN_FILES),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0),
        (getattr(resource, "RLIMIT_MSGQUEUE", resource.RLIMIT_CORE), 0, 0),
    ):
        # A lower limit may be in force already, which is as good.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (soft, hard))


def close_others(keep: list[int]) -> None:
    """Close every descriptor but the standard three and those to keep."""
    first = 3
    for descriptor in sorted(each for each in keep if each >= first):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, max(first + 1, os.sysconf("SC_OPEN_MAX")))
