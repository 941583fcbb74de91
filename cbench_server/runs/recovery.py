"""Recovery of runs whose process died, and its limit: a run may be what kills its daemon."""

from cbench_server.results import Failure
from cbench_server.spec import Lives, Run, RunState

MAX_DEATHS = 3
# A life in which so many rows were stored was not ended by the first calls of the run.
_ROWS_OF_A_LIFE = 10


def next_life(run: Run) -> Lives:
    """Count a death of the process that worked on a run; one that only had it queued did not."""
    rows = run.completed_rows
    if run.state is RunState.QUEUED:
        return Lives(run.lives.deaths, rows)
    has_lived = rows - run.lives.rows >= _ROWS_OF_A_LIFE
    return Lives(1 if has_lived else run.lives.deaths + 1, rows)


def given_up(run: Run) -> Failure | None:
    """Say why a run is not taken up by itself any more, if it is not."""
    if run.lives.deaths < MAX_DEATHS:
        return None
    return Failure(
        "daemon",
        "DAEMON_DIED",
        f"the daemon died {run.lives.deaths} times in a row while it worked on this run, which "
        f"is therefore not taken up by itself. To go on: cbench resume {run.run_id}",
    )
