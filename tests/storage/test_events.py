"""Events: in order, without gaps, once each, and read by cursor."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_server.errors import Unencodable, UnknownRun
from cbench_server.events import RowScored, StateChanged
from cbench_server.results import EvalRow
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import Run, RunState
from cbench_server.storage.database import SqliteDatabase
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.sqlite import SqliteStore
from cbench_server.storage.writer import QUEUE_BYTES, Writer
from tests.fixtures.stores import Place

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]


async def test_concurrent_appends_are_numbered_without_gaps(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    for run_id in ("r1", "r2"):
        await store.create_run(make_run(run_id))
    calls = [
        store.append(f"r{1 + ordinal % 2}", [RowScored(make_row(ordinal))])
        for ordinal in range(400)
    ]
    await asyncio.gather(*calls)
    for run_id in ("r1", "r2"):
        events = await store.read_events(run_id, 0)
        assert [stored.seq for stored in events] == list(range(1, 202))


async def test_a_row_is_stored_once_and_a_dropped_one_takes_no_seq(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    first = make_row(0, metadata={"n": 1})
    await store.append("r1", [RowScored(first)])
    again = [make_row(0, metadata={"n": 2}), make_row(1), make_row(1), make_row(0, repeat=1)]
    assert await store.append("r1", [RowScored(row) for row in again]) == 4
    rows = [stored.event for stored in await store.read_events("r1", 1)]
    assert rows == [RowScored(first), RowScored(make_row(1)), RowScored(make_row(0, repeat=1))]


async def test_a_failing_append_takes_none_of_its_group_along(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    calls = [
        store.append("r1" if ordinal % 5 else "unknown", [RowScored(make_row(ordinal))])
        for ordinal in range(50)
    ]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(result, UnknownRun) for result in results) == 10
    assert (await store.get_run("r1")).last_seq == 41


async def test_a_state_change_takes_along_the_rows_queued_before_it(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    row = asyncio.create_task(store.append("r1", [RowScored(make_row(0))]))
    change = asyncio.create_task(store.append("r1", [StateChanged(RunState.RUNNING)]))
    assert await asyncio.gather(row, change) == [2, 3]
    kinds = [type(stored.event) for stored in await store.read_events("r1", 1)]
    assert kinds == [RowScored, StateChanged]


async def test_processed_outputs_come_only_when_asked_for(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    short = make_row(0, processed={"context": "short", "n": 2**63, "b": b"\0", "none": None})
    long = make_row(1, processed={"context": "long " * 1000})
    none = make_row(2)
    empty = make_row(3, processed={})
    await store.append("r1", [RowScored(row) for row in (short, long, none, empty)])
    whole = await store.read_events("r1", 1, processed=True)
    assert [stored.event for stored in whole] == [
        RowScored(row) for row in (short, long, none, empty)
    ]
    for stored in await store.read_events("r1", 1):
        assert isinstance(stored.event, RowScored)
        assert stored.event.row.processed is None


async def test_a_page_is_bounded_by_count_and_by_bytes_and_is_never_empty(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    rows = [make_row(n, processed={"context": "x" * 100_000}) for n in range(5)]
    await store.append("r1", [RowScored(row) for row in rows])
    by_count = await store.read_events("r1", 1, limit=2)
    by_bytes = await store.read_events("r1", 1, max_bytes=150_000, processed=True)
    one = await store.read_events("r1", 1, max_bytes=1, processed=True)
    assert [stored.seq for stored in by_count] == [2, 3]
    assert [stored.seq for stored in by_bytes] == [2, 3]
    assert [stored.seq for stored in one] == [2]
    assert await store.read_events("r1", 6) == []
    assert await store.read_events("r1", 2**70) == []


async def test_events_can_be_read_without_the_rows(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    await store.append("r1", [RowScored(make_row(0)), StateChanged(RunState.WAITING, "gone")])
    [_, change] = await store.read_events("r1", 0, rows=False)
    assert (change.seq, change.event) == (3, StateChanged(RunState.WAITING, "gone"))


async def test_what_cannot_be_stored_is_named(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    for path, values in {
        r"processed\.a\[1\]\.b": {"processed": {"a": [0, {"b": 2**64}]}},
        r"processed\.text": {"processed": {"text": "\ud800"}},
        r"metadata\.when": {"metadata": {"when": {1}}},
        r"usage\.n": {"usage": {"n": -(2**63) - 1}},
    }.items():
        with pytest.raises(Unencodable, match=path):
            await store.append("r1", [RowScored(make_row(0, **values))])
    assert (await store.get_run("r1")).last_seq == 1


async def test_a_waiter_is_woken_by_the_next_event(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    assert await store.owners.acquire("r1")
    waiters = [asyncio.create_task(store.wait_for_events("r1", 1, 100.0)) for _ in range(3)]
    await store.append("r1", [RowScored(make_row(0))])
    assert await asyncio.gather(*waiters) == [True, True, True]
    assert await store.wait_for_events("r1", 1, 0.0)
    assert not await store.wait_for_events("r1", 2, 0.01)


async def test_examples_come_back_in_pages_with_their_types(
    store: SqlStore, make_run: MakeRun, make_example: Callable[..., SpooledExample]
) -> None:
    await store.create_run(make_run())
    fields = {"n": 2**64 - 1, "f": 1.0, "none": None, "b": b"\xff", "deep": [{"é": "→" * 2000}]}
    examples = [make_example(ordinal, **fields) for ordinal in range(5)]
    await store.add_examples("r1", examples[:3])
    await store.add_examples("r1", examples[2:], complete=True)
    first = await store.read_examples("r1", 0, 2)
    assert first + await store.read_examples("r1", 2, 100) == examples
    assert type(first[0].example["f"]) is float


async def test_examples_of_another_run_are_copied_as_they_are(
    store: SqlStore, make_run: MakeRun, make_example: Callable[..., SpooledExample]
) -> None:
    await store.create_run(make_run())
    await store.create_run(make_run("r2"))
    examples = [make_example(ordinal, text="word " * 2000) for ordinal in range(100)]
    await store.add_examples("r1", examples, complete=True)
    copied = 0
    while more := await store.copy_examples("r1", "r2", copied, 70):
        copied += more
    assert await store.spooled("r2") == (100, False)
    assert await store.read_examples("r2", 0, 1000) == examples
    # Again, as after a crash: what is there stays.
    assert await store.copy_examples("r1", "r2", 90, 70) == 10
    assert await store.spooled("r2") == (100, False)


async def test_writes_wait_while_too_many_bytes_are_queued(home: Path) -> None:
    await SqliteStore.open(home).close()
    writer = Writer(SqliteDatabase(home / "cbench.db"), lambda advanced: None)
    blocker = sqlite3.connect(home / "cbench.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    size = QUEUE_BYTES // 4
    tasks = [asyncio.create_task(writer.write(lambda _: None, size=size)) for _ in range(20)]
    for _ in range(100):
        await asyncio.sleep(0)
    assert writer.unfinished_size == QUEUE_BYTES
    blocker.execute("ROLLBACK")
    blocker.close()
    await asyncio.gather(*tasks)
    assert writer.unfinished_size == 0
    await asyncio.to_thread(writer.close)


async def test_a_reader_between_pages_keeps_no_transaction_open(
    store: SqlStore, place: Place, make_run: MakeRun, make_row: MakeRow
) -> None:
    await store.create_run(make_run())
    await store.append("r1", [RowScored(make_row(n)) for n in range(1500)])
    pages = store.iterate_rows("r1", "a")
    first = await anext(pages)
    await store.append("r1", [RowScored(make_row(n)) for n in range(1500, 3000)])
    if place.is_sqlite:
        # It would keep the log from being emptied.
        other = sqlite3.connect(place.home / "cbench.db")
        busy, left, _ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        other.close()
        assert (busy, left) == (0, 0)
    else:
        # It would keep deleted rows from being vacuumed.
        state = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        assert place.sql(state) == [(0,)]
    rest = [row async for page in pages for row in page]
    assert [row.ordinal for row in first + rest] == list(range(3000))
