"""Stored runs of a daemon: found by id or `last`, and read."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cbench_server.cli.exits import UsageError

if TYPE_CHECKING:
    from cbench_client import BenchClient
    from cbench_client._gen.cbench.v1 import bench_pb2
    from cbench_server.reports.grouped_rows import ReadRows
    from cbench_server.reports.report import FullRow, Report
    from cbench_server.results import EvalRow
    from cbench_server.spec import Run

_SHOWN = 5


def find_run(client: "BenchClient", text: str) -> "Run":
    """Return the run with this id or the only one that begins with it, or the newest for `last`."""
    from cbench_client import Refused

    if text == "last":
        newest = next(client.list(), None)
        if newest is None:
            raise UsageError("there are no runs yet. Start one with: cbench run")
        return run_of(client.get(newest.run_id))
    try:
        return run_of(client.get(text))
    except Refused as error:
        if error.code not in ("NOT_FOUND", "INVALID_ARGUMENT"):
            raise
        found = [run.run_id for run in client.list() if run.run_id.startswith(text)]
        if len(found) > 1:
            some = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
            raise UsageError(f'{len(found)} runs begin with "{text}": {some}.') from None
        if not found:
            raise
    return run_of(client.get(found[0]))


def find_run_id(client: "BenchClient", text: str) -> str:
    """Return the id of the run that `find_run` finds, also if it is damaged."""
    from cbench_client import Refused

    try:
        return find_run(client, text).run_id
    except Refused as error:
        if error.code != "DATA_LOSS":
            raise
    ids = [run.run_id for run in client.list()]
    begun = (each for each in ids if text == "last" or each.startswith(text))
    return text if text in ids else next(begun, text)


def run_of(message: "bench_pb2.Run") -> "Run":
    """Decode a run, with its metrics in the order in which they are shown."""
    from cbench_server.reports.stored_runs import shown_run
    from cbench_server.rpc.runs import run_from_proto

    return shown_run(run_from_proto(message))


def rows_of(client: "BenchClient", run_id: str, **choice: Any) -> "Iterator[EvalRow]":
    """Read rows from the daemon, page by page; `choice` is that of `BenchClient.rows`."""
    from cbench_server.rpc.rows import row_from_proto

    return map(row_from_proto, client.rows(run_id, **choice))


def full_rows_of(client: "BenchClient", run_id: str, system: str) -> "Iterator[FullRow]":
    """Read the rows of a system with what it returned, and the original where it is known."""
    from cbench_client.messages import convert
    from cbench_server.rpc.rows import row_from_proto

    messages = client.rows(run_id, include_processed=True, include_original=True, system=system)
    for message in messages:
        known = message.HasField("original")
        original = convert.example_from_proto(message.original) if known else None
        yield row_from_proto(message), original


class DaemonRuns:
    """Runs of a daemon, as a `Source` of reports."""

    def __init__(self, client: "BenchClient") -> None:
        self._client = client

    def rows(self, run_id: str, system: str) -> "Iterator[EvalRow]":
        """See Source."""
        return rows_of(self._client, run_id, system=system)

    def full_rows(self, run_id: str, system: str) -> "Iterator[FullRow]":
        """See Source."""
        return full_rows_of(self._client, run_id, system)


def report_from(client: "BenchClient", run: "Run", *, group_by: Sequence[str] = ()) -> "Report":
    """Build the report of a run, whose systems are compared with each other."""
    from cbench_server.reports import stored_runs

    return stored_runs.report_from(DaemonRuns(client), run, group_by=group_by)


def grouped(client: "BenchClient", run: "Run", fields: Sequence[str]) -> "tuple[Run, ReadRows]":
    """Return a run with the figures of its groups, and what reads its rows with their groups."""
    from cbench_server.reports import stored_runs

    return stored_runs.grouped(DaemonRuns(client), run, fields)
