"""Usage of threads and memory by the pairs that run, which no limit of a single process bounds."""

import contextlib
import os
from collections.abc import Iterable, Iterator

from cbench_server.sandbox.limits import MAX_THREADS
from cbench_server.sandbox.pair import Pair
from cbench_server.sandbox.syscalls import IS_LINUX

# Places in /proc/PID/stat, counted from what follows the program's name.
_THREADS, _PAGES = 17, 21


class Meter:
    """Reads what processes use; made before the host's process table is out of sight."""

    def __init__(self, most: int) -> None:
        self._table = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY) if IS_LINUX else None
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._most = most

    def excess(self, pairs: Iterable[Pair]) -> Iterator[tuple[Pair, str]]:
        """Yield the pairs that use too much, and of what: together, it is the largest."""
        if self._table is None:
            return
        used: dict[Pair, int] = {}
        for pair in pairs:
            found = [self._of(self._table, pid) for pid in (pair.tester, pair.candidate)]
            if max(threads for threads, _ in found) > MAX_THREADS:
                yield pair, "threads"
            used[pair] = sum(memory for _, memory in found)
        if sum(used.values()) > self._most:
            yield max(used, key=lambda pair: used[pair]), "memory"

    def _of(self, table: int, pid: int) -> tuple[int, int]:
        # One that has ended uses nothing.
        with contextlib.suppress(OSError):
            file = os.open(f"{pid}/stat", os.O_RDONLY, dir_fd=table)
            try:
                # The name of the program comes in brackets and may hold anything.
                fields = os.read(file, 4096).rpartition(b")")[2].split()
            finally:
                os.close(file)
            return int(fields[_THREADS]), int(fields[_PAGES]) * self._page
        return 0, 0
