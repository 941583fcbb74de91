"""Events of a run as lines of a log: an object for each, and the sentence that a person reads."""

import time
from typing import TYPE_CHECKING, Any

from cbench_server.texts import numbers
from cbench_server.texts.grid import printable

if TYPE_CHECKING:
    from cbench_client._gen.cbench.v1 import bench_pb2

Entry = dict[str, Any]


def entry_of(event: "bench_pb2.RunEvent", run_id: str) -> Entry | None:
    """Return what a stored event says; None for rows that did not fail, and for progress."""
    from cbench_server.rpc.rows import row_from_proto
    from cbench_server.rpc.runs import run_from_proto

    entry: Entry = {"time": _stamp(event.create_time.ToNanoseconds() / 1e9), "run_id": run_id}
    kind = event.WhichOneof("kind")
    if kind == "row":
        row = row_from_proto(event.row)
        if row.failure is None:
            return None
        return {
            **entry,
            "event": "row failed",
            "system": row.system,
            "dataset": row.dataset,
            "example": row.example_id,
            "row": row.ordinal,
            "repeat": row.repeat,
            "reason": row.failure.reason,
            "message": row.failure.message,
            **({"replica": row.replica} if row.replica else {}),
            **({"traceparent": row.traceparent} if row.traceparent else {}),
        }
    if kind == "state_change":
        from cbench_client._gen.cbench.v1 import bench_pb2

        state = bench_pb2.RunState.Name(event.state_change.state).removeprefix("RUN_STATE_")
        return {**entry, "event": state.lower(), "message": event.state_change.reason}
    if kind not in ("accepted", "finished"):
        return None
    run = run_from_proto(event.accepted if kind == "accepted" else event.finished)
    if kind == "accepted":
        datasets = [each.name for each in run.spec.datasets]
        about = {"systems": [*run.systems], "datasets": datasets, "caller": run.created_by}
        return {**entry, "event": "accepted", **about}
    return {
        **entry,
        "event": run.state.name.lower(),
        "rows": run.completed_rows,
        "failed_rows": run.failed_rows,
        "seconds": round((run.end_time or run.create_time) - run.create_time, 3),
        "reason": run.failure.reason if run.failure else "",
        "message": run.failure.message if run.failure else "",
    }


def line_of(entry: Entry) -> str:
    """Write an entry for a person."""
    words = [entry["event"]]
    if "systems" in entry:
        words.append(f"{', '.join(entry['systems'])} on {', '.join(entry['datasets'])}")
    if "rows" in entry:
        rows = f"{entry['rows']:,} rows, {entry['failed_rows']:,} failed"
        words.append(f"{rows}, {numbers.seconds(entry['seconds'])}")
    if "system" in entry:
        words.append(f"{entry['system']}, {entry['dataset']} {entry['example']}")
    if entry.get("reason"):
        words.append(entry["reason"])
    if entry.get("message"):
        words.append(entry["message"])
    return f"{entry['time']} {printable(': '.join(words))}"


def _stamp(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"
