"""List of runs: its statement, put together from the filters that are asked for."""

from collections.abc import Collection, Mapping
from typing import Any

from cbench_server.spec import RunState
from cbench_server.storage import sqlite_statements as sql


def list_runs(
    limit: int, before: str | None, states: Collection[RunState], labels: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """Select runs, newest first, and give the parameters with the statement."""
    conditions = [sql.VISIBLE_RUNS]
    parameters: dict[str, Any] = {"limit": limit}
    if before is not None:
        conditions.append("runs.run_id < :before")
        parameters["before"] = before
    if states:
        named = {f"state_{number}": str(state) for number, state in enumerate(states)}
        conditions.append(f"runs.state IN ({', '.join(f':{name}' for name in named)})")
        parameters |= named
    for number, (key, value) in enumerate(labels.items()):
        conditions.append(
            "runs.id IN (SELECT run FROM run_labels "
            f'WHERE "key" = :key_{number} AND value = :value_{number})'
        )
        parameters |= {f"key_{number}": key, f"value_{number}": value}
    return f"{' AND '.join(conditions)} ORDER BY runs.run_id DESC LIMIT :limit", parameters
