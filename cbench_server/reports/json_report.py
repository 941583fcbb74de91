"""Runs and rows as strict JSON: an infinite or undefined number is null."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from cbench_server.reports.groups import plain_groups
from cbench_server.reports.judges import marks_of
from cbench_server.results import EvalRow, row_to_dict, strict_json
from cbench_server.spec import Run


def to_json(run: Run, rows: Iterable[EvalRow]) -> Iterator[str]:
    """Render a run with its rows, piece by piece, so that the rows need not fit in memory.

    It has the keys of `EvalResult.to_json` and those of the run.
    """
    head = strict_json(run_to_dict(run)).removesuffix("\n}")
    yield head + ',\n  "rows": ['
    separator = "\n    "
    for row in rows:
        yield separator + row_line(row)
        separator = ",\n    "
    yield "\n  ]\n}\n"


def row_line(row: EvalRow) -> str:
    """Render a row on one line."""
    return strict_json(row_to_dict(row), indent=None)


def full_row_line(row: EvalRow, original: dict[str, Any] | None) -> str:
    """Render a row on one line, with the example and what the system made of it."""
    texts = {"original": original, "processed": row.processed}
    return strict_json({**row_to_dict(row), **texts}, indent=None)


def run_to_dict(run: Run) -> dict[str, Any]:
    """Give a run as plain data; times are ISO 8601 in UTC, spans are seconds."""
    return {
        "run_id": run.run_id,
        "state": str(run.state),
        "create_time": iso_time(run.create_time),
        "end_time": None if run.end_time is None else iso_time(run.end_time),
        "total_rows": run.total_rows,
        "completed_rows": run.completed_rows,
        "failed_rows": run.failed_rows,
        "systems": list(run.systems),
        "roles": {name: role for name in run.systems if (role := run.role_of(name))},
        "progress": {system: asdict(progress) for system, progress in run.progress.items()},
        "failure": None if run.failure is None else asdict(run.failure),
        "waiting_reason": run.waiting_reason or None,
        "parent_run_id": run.parent_run_id or None,
        "created_by": run.created_by or None,
        "labels": run.spec.labels,
        "spec": asdict(run.spec),
        "notes": [asdict(note) for note in run.notes],
        "marks": marks_of(run),
        "summary": run.summary,
        "groups": plain_groups(run.systems, run.summary),
        "timing": run.timing,
        "config": run.config,
    }


def iso_time(seconds: float) -> str:
    """Write a time since the epoch as `2026-01-31T12:00:00.123Z`."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
