"""Annotations of AlpacaEval, which say of each instruction whose response was preferred."""

import json
from pathlib import Path

from cbench_server.types import Example

_READ = ("preference", "glm_preference")


def alpaca_annotations(path: Path) -> dict[str, Example] | None:
    """Read the preferences by instruction; None if the file holds no annotations."""
    if path.suffix.lower() != ".json":
        return None
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(rows, list) or not rows:
        return None
    if not all(isinstance(row, dict) and {"instruction", "preference"} <= set(row) for row in rows):
        return None
    return {
        str(row["instruction"]): {name: row[name] for name in _READ if row.get(name) is not None}
        for row in rows
    }
