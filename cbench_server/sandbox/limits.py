"""Limits of a jailed process: what it may use, and what it may still touch of its parent's."""

import contextlib
import os
import resource
import struct
from collections.abc import Callable, Iterable
from functools import partial

from cbench_server.sandbox.syscalls import IS_LINUX, prepare

MEMORY_MB = 1024
DISK_MB = 64
TESTER_MEMORY_MB = 2048
_STACK_MB = 64
_OPEN_FILES = 64
MAX_THREADS = 128
"""Of one process; it is ended within a twentieth of a second of having more."""
MAX_TIMEOUT_S = 60.0
"""The longest that a program may be given."""
_SHARE_OF_MACHINE = 0.5


def memory_of_all() -> int:
    """Return the bytes that all programs which run at once may use together."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(min([machine, *memory_of_groups()]) * _SHARE_OF_MACHINE)


def memory_of_groups(root: str = "/sys/fs/cgroup", table: str = "/proc/self/cgroup") -> list[int]:
    """Return the limits of the control groups that this process is in, of both versions."""
    found = []
    for line in _read(table).splitlines():
        _, kinds, group = line.split(":", 2)
        if kinds == "memory":
            top, name = f"{root}/memory", "memory.limit_in_bytes"
        elif not kinds:
            top, name = root, "memory.max"
        else:
            continue
        # The groups above count as well, and in a container the first may be all that is seen.
        parts = group.rstrip("/").split("/")
        for depth in range(len(parts), 0, -1):
            said = _read(f"{top}{'/'.join(parts[:depth])}/{name}").strip()
            if said.isdecimal():
                found.append(int(said))
    return found


def _read(path: str) -> str:
    with contextlib.suppress(OSError), open(path) as file:
        return file.read()
    return ""


def be_ended_first() -> None:
    """Have the kernel, where memory runs out, end this process and its forks before any other."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def limit_zygote() -> None:
    """Set the limits that are the same for all jailed processes, which inherit them."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # Each job that waits brings four descriptors.
    _limit(resource.RLIMIT_NOFILE, most)
    _limit(resource.RLIMIT_STACK, _STACK_MB << 20)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    _limit(getattr(resource, "RLIMIT_MSGQUEUE", resource.RLIMIT_CORE), 0)


def limits(memory_mb: int, file_mb: int) -> list[Callable[[], object]]:
    """Return the calls by which a fork sets the limits that are its own."""
    return [
        _limiting(resource.RLIMIT_AS, memory_mb << 20),
        _limiting(resource.RLIMIT_FSIZE, file_mb << 20),
        _limiting(resource.RLIMIT_NOFILE, _OPEN_FILES),
    ]


def _limiting(kind: int, value: int) -> Callable[[], object]:
    most = resource.getrlimit(kind)[1]
    # A lower limit may be in force already, which is as good.
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    if IS_LINUX:
        this_process = 0
        return prepare("prlimit64", this_process, kind, struct.pack("=qq", value, value), None)
    return partial(resource.setrlimit, kind, (value, value))


def _limit(kind: int, value: int) -> None:
    # Not every system has every limit.
    with contextlib.suppress(ValueError, OSError):
        _limiting(kind, value)()


def close_others(keep: Iterable[int], most: int) -> None:
    """Close every descriptor below `most` but the standard three and those to keep."""
    first = 3
    for descriptor in sorted(keep):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, most)
