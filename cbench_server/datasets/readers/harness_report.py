"""Reports of the SWE-bench harness, which say what became of each issue."""

import json
from pathlib import Path

from cbench_server.types import Example

_KEYS = ("resolved_ids", "submitted_ids")


def harness_report(path: Path) -> list[Example] | None:
    """Read which issues were resolved, as references; None if the file is no such report.

    The report of a run lists the issues; an issue that was handed in and is not resolved, for
    whichever reason, counts as that. Reports of single issues have an object for each.
    """
    if path.suffix.lower() != ".json":
        return None
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(report, dict):
        return None
    if report and all(isinstance(each, dict) and "resolved" in each for each in report.values()):
        return [{"id": name, "resolved": bool(each["resolved"])} for name, each in report.items()]
    if not all(isinstance(report.get(key), list) for key in _KEYS):
        return None
    resolved = set(report["resolved_ids"])
    return [{"id": name, "resolved": name in resolved} for name in report["submitted_ids"]]
