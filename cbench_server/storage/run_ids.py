"""Ids of the newest runs, read in a moment: for completion, where starting a store is too slow."""

import sqlite3
from pathlib import Path


def newest_run_ids(home: Path, limit: int) -> list[str]:
    """Return the newest ids of the store in a folder; none if there is no store."""
    path = home / "cbench.db"
    if not path.exists():
        return []
    database = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=0.2)
    try:
        found = database.execute("SELECT run_id FROM runs ORDER BY run_id DESC LIMIT ?", (limit,))
        return [row[0] for row in found]
    finally:
        database.close()
