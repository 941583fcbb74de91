"""Files of runs on their way from clients, on disk until they are read.

Their senders need not say how long they are, so all of them together are bounded while they come.
"""

import os
import shutil
import threading
from pathlib import Path
from types import TracebackType

from cbench_server.errors import StoreFull
from cbench_server.storage.database import explained
from cbench_server.storage.leftovers import new_part

_MB = 1 << 20


class ImportSpools:
    """What clients are sending, under `<home>/imports`; a `max_bytes` of 0 leaves the disk."""

    def __init__(self, home: Path, max_bytes: int = 0) -> None:
        self._folder = home / "imports"
        self._max_bytes = max_bytes
        self._held: dict[ImportSpool, int] = {}
        self._lock = threading.Lock()

    def open(self) -> "ImportSpool":
        """Start a file; it blocks on the disk, as all of it does."""
        with explained(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            spool = ImportSpool(self, self._folder)
        with self._lock:
            self._held[spool] = 0
        return spool

    def take(self, spool: "ImportSpool", size: int) -> None:
        """Make room for so many bytes of a file, or raise `StoreFull`."""
        with self._lock:
            held = sum(self._held.values()) + size
            if self._max_bytes and held > self._max_bytes:
                raise StoreFull(
                    f"what is being imported takes more than {self._max_bytes / _MB:,.0f} MB, the "
                    "max_store_mb of this daemon. Nothing of it was kept; raise max_store_mb."
                )
            # It has to fit once more, into the store, beside the runs that go on meanwhile.
            if held > shutil.disk_usage(self._folder).free - size:
                raise StoreFull(
                    f"{self._folder.parent} has no room to hold what is being imported and to "
                    "store it as well. Nothing of it was kept; free some space."
                )
            # One that was left meanwhile holds nothing any more.
            if spool in self._held:
                self._held[spool] += size

    def give_back(self, spool: "ImportSpool") -> None:
        """Take back all that a file was given."""
        with self._lock:
            self._held.pop(spool, None)


class ImportSpool:
    """One file on its way. Leaving the context removes it."""

    def __init__(self, spools: ImportSpools, folder: Path) -> None:
        self._spools = spools
        descriptor, self.path = new_part(folder, suffix=".part")
        self._file = os.fdopen(descriptor, "wb")

    def __enter__(self) -> "ImportSpool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with explained(self.path):
                try:
                    # Removed while it is locked, so that nobody takes it for a leftover.
                    self.path.unlink(missing_ok=True)
                finally:
                    self._file.close()
        finally:
            self._spools.give_back(self)

    def write(self, content: bytes) -> None:
        """Add a piece; raise `StoreFull` when there is no room for it."""
        self._spools.take(self, len(content))
        with explained(self.path):
            self._file.write(content)

    def finish(self) -> Path:
        """Return where all that was written can be read."""
        with explained(self.path):
            self._file.flush()
        return self.path
