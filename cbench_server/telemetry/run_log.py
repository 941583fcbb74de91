"""The log of runs: a line when one is taken on, starts, waits, goes on and ends.

A failed row has a line at the level debug, and the first of each reason and system at info. No
line holds texts of examples or answers; messages of failures may quote them, and stay out.
"""

import logging
from collections.abc import Sequence

from cbench_server.events import RowScored, RunAccepted, RunFinished, StateChanged, StoredEvent
from cbench_server.results import EvalRow
from cbench_server.spec import Run, RunState

log = logging.getLogger("cbench_server.runs")

_MOST_RUNS = 1000


class RunLog:
    """Writes what is stored of runs into the log. Belongs to one event loop."""

    def __init__(self) -> None:
        self._seen: dict[str, set[tuple[str, str]]] = {}

    def committed(self, run_id: str, events: Sequence[StoredEvent], seconds: float) -> None:
        """Take what was stored in one commit."""
        for event in events:
            if isinstance(event, RowScored):
                if event.row.failure is not None:
                    self._row_failed(run_id, event.row, event.row.failure.reason)
            elif isinstance(event, StateChanged):
                _state_changed(run_id, event)
            elif isinstance(event, RunAccepted):
                _accepted(event.run)
            elif isinstance(event, RunFinished):
                self._seen.pop(run_id, None)
                _ended(event.run)

    def _row_failed(self, run_id: str, row: EvalRow, reason: str) -> None:
        if len(self._seen) >= _MOST_RUNS:
            self._seen.clear()
        seen = self._seen.setdefault(run_id, set())
        is_new = (row.system, reason) not in seen
        seen.add((row.system, reason))
        extra = {
            "run_id": run_id,
            "system": row.system,
            "dataset": row.dataset,
            "row": row.ordinal,
            "repeat": row.repeat,
            "reason": reason,
        }
        log.log(logging.INFO if is_new else logging.DEBUG, "row failed", extra=extra)


def _accepted(run: Run) -> None:
    extra = {
        "run_id": run.run_id,
        "systems": [*run.systems],
        "datasets": [each.name for each in run.spec.datasets],
        "caller": run.created_by,
    }
    log.info("run accepted", extra=extra)


def _state_changed(run_id: str, event: StateChanged) -> None:
    extra = {"run_id": run_id, "state": event.state.name}
    if event.state is RunState.WAITING:
        log.warning("run waits", extra={**extra, "reason": event.reason})
    elif event.state is RunState.RUNNING:
        log.info("run works", extra=extra)
    else:
        log.info("run queued", extra={**extra, "reason": event.reason})


def _ended(run: Run) -> None:
    extra: dict[str, object] = {
        "run_id": run.run_id,
        "state": run.state.name,
        "rows": run.completed_rows,
        "failed_rows": run.failed_rows,
        "seconds": round((run.end_time or run.create_time) - run.create_time, 3),
    }
    if run.failure is not None:
        extra["reason"] = run.failure.reason
    log.log(logging.INFO if run.failure is None else logging.ERROR, "run ended", extra=extra)
