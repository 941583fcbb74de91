"""Deleting: all of a run, in parts, and by age."""

import asyncio
import os
from collections.abc import Callable
from contextlib import closing

import pytest

from cbench_server.errors import UnknownRun
from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.runs.store import RetentionRule, SpooledExample
from cbench_server.spec import Run, RunState
from cbench_server.storage.deletion import delete_some
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.transaction import Transaction
from tests.fixtures.stores import Place

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]

TABLES = ("runs", "run_labels", "run_systems", "events", "examples")


def counts(place: Place) -> dict[str, int]:
    return {table: place.sql(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


async def fill(
    store: SqlStore, run: Run, make_row: MakeRow, make_example: MakeExample, size: int
) -> None:
    await store.create_run(run)
    await store.add_examples(run.run_id, [make_example(n) for n in range(size)], complete=True)
    rows = [make_row(n, processed={"x": os.urandom(2000)}) for n in range(size)]
    await store.append(run.run_id, [RowScored(row) for row in rows])


async def test_a_deleted_run_leaves_nothing_and_its_space_is_given_back(
    place: Place, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> None:
    store = place.open()
    await fill(store, make_run("r1", request_id="q"), make_row, make_example, 1200)
    await fill(store, make_run("r2", labels={"a": "b"}), make_row, make_example, 3)
    claim = await store.owners.acquire("r1")
    assert claim is not None
    await store.owners.release(claim)
    await store.delete_run("r1")
    await store.delete_run("r1")
    with pytest.raises(UnknownRun):
        await store.get_run("r1")
    assert not (place.home / "locks" / "r1.lock").exists()
    assert len(await store.read_events("r2", 0)) == 4
    assert (await store.create_run(make_run("r3", request_id="q"))).run_id == "r3"
    await store.close()
    assert counts(place) == {
        "runs": 2,
        "run_labels": 1,
        "run_systems": 1,
        "events": 5,
        "examples": 3,
    }
    if place.is_sqlite:
        assert (place.home / "cbench.db").stat().st_size < 200_000


async def test_appends_go_on_while_a_run_is_deleted(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> None:
    await fill(store, make_run("r1"), make_row, make_example, 2000)
    await store.create_run(make_run("r2"))
    deletion = asyncio.create_task(store.delete_run("r1"))
    ordinal = 0
    while not deletion.done():
        await store.append("r2", [RowScored(make_row(ordinal))])
        ordinal += 1
    await deletion
    assert ordinal > 1
    assert (await store.get_run("r2")).last_seq == ordinal + 1


async def test_a_run_is_gone_for_everyone_from_the_start_of_its_deletion(
    place: Place, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> None:
    store = place.open()
    await fill(store, make_run(), make_row, make_example, 1200)
    await store.close()
    interrupt_deletion(place, "r1")
    store = place.open()
    assert await store.list_runs() == []
    with pytest.raises(UnknownRun):
        await store.append("r1", [RowScored(make_row(5000))])
    assert await store.finish_deletions() == ["r1"]
    await store.close()
    assert set(counts(place).values()) == {0}


def interrupt_deletion(place: Place, run_id: str) -> None:
    """Do what a process does that is killed while it deletes a run."""
    with closing(place.connect()) as connection:
        connection.begin_writing()
        key = Transaction(connection, careful=False).mark_deleted(run_id)
        assert key is not None
        assert delete_some(connection, key)
        connection.commit()


async def test_retention_deletes_old_finished_runs_that_nobody_holds(
    place: Place, make_run: MakeRun
) -> None:
    store = place.open(clock=lambda: 1000.0)
    final = {"state": RunState.SUCCEEDED}
    await store.create_run(make_run("old", end_time=400.0, **final))
    await store.create_run(make_run("old-without-end", **final))
    await store.create_run(make_run("held", end_time=400.0, **final))
    await store.create_run(make_run("recent", end_time=600.0, **final))
    await store.create_run(make_run("running", state=RunState.RUNNING))
    assert await store.owners.acquire("held")
    pruned = await store.prune(RetentionRule(older_than=500.0))
    assert [each.run_id for each in pruned] == ["old-without-end", "old"]
    left = [run.run_id for run in await store.list_runs()]
    await store.close()
    assert left == ["running", "recent", "held"]
