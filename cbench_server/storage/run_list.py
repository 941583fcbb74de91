"""List of runs, page by page, in which a damaged run is named and hides no other."""

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from cbench_server.errors import DamagedRun, printable
from cbench_server.results import Failure
from cbench_server.runs.store import RunPage
from cbench_server.spec import Run, RunSpec, RunState
from cbench_server.storage.connection import Connection
from cbench_server.storage.locks import is_run_id
from cbench_server.storage.run_rows import RunHead, heads, read_labels, snapshot, whole_run


def page_runs(
    connection: Connection,
    limit: int,
    before: str | None,
    filters: tuple[Collection[RunState], Mapping[str, str], str | None],
    max_bytes: int,
) -> RunPage:
    """Return runs, newest first, as many as a page may hold.

    The filters are states, labels and who started them; None means anyone.
    Filters see verified values only: where those are damaged, a run is listed whatever is
    asked for.
    """
    states, labels, created_by = filters
    found: list[Run] = []
    last: object = None
    size = 0
    with snapshot(connection):
        for each in _asked_for(connection, before, states, labels):
            # A name that damage made is none to go on from.
            is_full = len(found) >= limit or size >= max_bytes
            if is_full and isinstance(last, str) and is_run_id(last):
                return RunPage(found, last)
            last = each.run_id
            run, run_size = _listed(connection, each)
            if created_by is not None and run.created_by != created_by and not run.damage:
                continue
            found.append(run)
            size += run_size
    return RunPage(found, None)


def _asked_for(
    connection: Connection,
    before: str | None,
    states: Collection[RunState],
    labels: Mapping[str, str],
) -> Iterator[RunHead | DamagedRun]:
    wanted = frozenset(map(str, states))
    for each in heads(connection, before):
        if isinstance(each, RunHead):
            if each.deleted or (wanted and each.state not in wanted):
                continue
            if labels:
                try:
                    theirs = read_labels(connection, each)
                except DamagedRun as error:
                    yield error
                    continue
                if any(theirs.get(key) != value for key, value in labels.items()):
                    continue
        yield each


def _listed(connection: Connection, each: RunHead | DamagedRun) -> tuple[Run, int]:
    """Return a run with the bytes that its record takes."""
    if isinstance(each, DamagedRun):
        return damaged_run(each), 0
    try:
        size: Any = connection.execute(connection.sql.RECORD_SIZE, {"run": each.id}).fetchone()[0]
        return whole_run(connection, each), int(size)
    except DamagedRun as error:
        return damaged_run(error, each.create_time), 0
    except sqlite3.DatabaseError as error:
        return damaged_run(DamagedRun(each.run_id, f'run "{each.run_id}" cannot be read', error)), 0


def damaged_run(error: DamagedRun, create_time: float = 0.0) -> Run:
    """Stand in for a run of which no more can be told than its id and what is damaged."""
    return Run(
        run_id=printable(error.run_id),
        spec=RunSpec((), ()),
        state=RunState.FAILED,
        create_time=create_time,
        failure=Failure("daemon", error.reason, str(error)),
        damage=str(error),
    )


def run_ids(connection: Connection) -> list[str]:
    """Return the ids of all runs, oldest first, those of damaged ones too."""
    with snapshot(connection):
        found = [
            printable(each.run_id)
            for each in heads(connection, None)
            if isinstance(each, DamagedRun) or not each.deleted
        ]
    return found[::-1]


def unfinished_runs(connection: Connection) -> list[str]:
    """Return the ids of runs that are not over, oldest first; of a damaged one nobody knows."""
    final = {str(state) for state in RunState if state.is_final}
    with snapshot(connection):
        found = [
            each.run_id
            for each in heads(connection, None)
            if isinstance(each, RunHead) and not each.deleted and each.state not in final
        ]
    return found[::-1]
