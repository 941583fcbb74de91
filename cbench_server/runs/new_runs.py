"""New runs: their ids, and what they begin as."""

import secrets
import time
from collections.abc import Sequence

from cbench_server.runs.callers import current_caller
from cbench_server.spec import Run, RunSpec, RunState, SystemProgress


def new_run(spec: RunSpec, request_id: str, systems: Sequence[str], now: float) -> Run:
    """Make a run that waits for its turn, of whoever is calling."""
    return Run(
        run_id=new_run_id(now),
        spec=spec,
        state=RunState.QUEUED,
        create_time=now,
        request_id=request_id,
        systems=tuple(systems),
        progress={name: SystemProgress() for name in systems},
        created_by=current_caller().name,
    )


def new_run_id(now: float) -> str:
    """Make an id that sorts by time of creation and can be read aloud."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{stamp}-{int(now % 1 * 1000):03d}{secrets.token_hex(3)}"
