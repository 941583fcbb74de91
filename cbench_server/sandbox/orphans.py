"""Finding processes that a candidate left behind, where no namespace ends them with it."""

import contextlib
import os
import signal
from collections.abc import Collection

from cbench_server.sandbox.syscalls import PR_SET_CHILD_SUBREAPER, prctl


def adopt() -> None:
    """Become the parent of what our children leave behind."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_orphans(known: Collection[int]) -> None:
    """Kill and reap all our children but the known ones, and what they leave behind in turn."""
    while orphans := [pid for pid in _children() if pid not in known]:
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    ours = str(os.getpid())
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            # The name of the program comes in brackets and may hold anything.
            if file.read().rpartition(")")[2].split()[1] == ours:
                found.append(int(name))
    return found
