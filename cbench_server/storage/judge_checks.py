"""Judge checks: what judges said of controls, one small file each, so that none is asked twice."""

import json
import os
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cbench_server.durable.files import put_in_place
from cbench_server.storage.leftovers import new_part


class JudgeCheckStore:
    """The checks under `<home>/judge-checks`. Its methods block on the disk."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "judge-checks"

    def get(self, key: str) -> dict[str, Any] | None:
        """Return a record; None if there is none that can be read."""
        try:
            record = json.loads(self._path(key).read_bytes())
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def put(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record; a reader sees all of it or nothing."""
        self._directory.mkdir(parents=True, exist_ok=True)
        handle, temporary = new_part(self._directory, prefix=".new-")
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(record).encode())
            # One that is damaged is none: the judge is asked again.
            put_in_place("judge-check", file, temporary, self._path(key), is_synced=False)

    def _path(self, key: str) -> Path:
        return self._directory / f"{blake2b(key.encode(), digest_size=16).hexdigest()}.json"
