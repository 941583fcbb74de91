"""A run leaves a store as a file and comes back the same; what is not all of a run is refused."""

import asyncio
import gzip
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from cbench_server.errors import AlreadyExists, DamagedRun, StoreFull, UnknownRun
from cbench_server.events import RowScored, RunFinished, StateChanged
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowQuery, SpooledExample
from cbench_server.spec import Run, RunNote, RunState
from cbench_server.storage import codec
from cbench_server.storage.connection import Database
from cbench_server.storage.database import SqliteDatabase
from cbench_server.storage.run_files import export_run, import_run, salvage_run
from cbench_server.storage.run_format import (
    BadRunFile,
    EventFrame,
    ExampleFrame,
    RunFrame,
    compressed,
    encode_frames,
    read_run_file,
)
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.sqlite import SqliteStore
from tests.fixtures import preloaded
from tests.fixtures.stores import Place
from tests.fixtures.waiting import wait_until

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]

CHILD = Path(__file__).with_name("child.py")
ROWS = 6


@pytest.fixture
async def written(
    home: Path, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> Path:
    """A store with a finished run of two systems, with all that a run can have."""
    store = SqliteStore.open(home, clock=lambda: 123.25)
    run = make_run(
        "r1",
        labels={"team": "rot & blau"},
        request_id="q1",
        config={"bytes": b"\0\xff", "tiny": 5e-324, "none": None},
        parent_run_id="r0",
    )
    await store.create_run(run)
    await store.add_examples("r1", [make_example(n) for n in range(ROWS)], complete=True)
    rows = [
        make_row(
            n,
            system,
            failed=n == 3,
            reused=n == 1,
            carried=("context",),
            processed={
                "context": f"context {n}",
                "answer": f"{system} {n} " * (1500 if n == 4 else 1),
            },
        )
        for n in range(ROWS)
        for system in ("b", "a")
    ]
    running = {"state": RunState.RUNNING, "systems": ("a", "b")}
    await store.append("r1", [StateChanged(RunState.RUNNING)], update=running)
    await store.append("r1", [RowScored(row) for row in rows])
    done = {
        "state": RunState.SUCCEEDED,
        "end_time": 200.5,
        "notes": (RunNote("CODE", "A note."),),
        "summary": {"a": {"mean_score": 0.5}},
    }
    finished = RunFinished(await store.get_run("r1"))
    await store.append("r1", [finished], update=done)
    await store.pin("r1")
    await store.close()
    return home / "cbench.db"


@pytest.fixture
def file(written: Path, tmp_path: Path) -> Path:
    return exported(SqliteDatabase(written), "r1", tmp_path / "r1.run")


def exported(database: Database, run_id: str, to: Path) -> Path:
    with export_run(database, run_id) as parts:
        to.write_bytes(b"".join(parts))
    return to


@pytest.fixture
def elsewhere(place: Place, tmp_path: Path) -> Place:
    """A place of each kind, beside that of the store in which the run was made."""
    return Place(tmp_path / "other", place.address)


@pytest.fixture
async def other(elsewhere: Place) -> SqlStore:
    return elsewhere.open()


async def read(store: SqlStore, run_id: str) -> list[object]:
    return [
        await store.get_run(run_id),
        await store.read_events(run_id, 0, processed=True, max_bytes=10**9),
        await store.read_rows(run_id, RowQuery(processed=True, original=True)),
        await store.read_examples(run_id, 0, 100),
    ]


@pytest.mark.parametrize("pack", [False, True], ids=["plain", "gzip"])
async def test_a_run_comes_back_byte_for_byte(
    written: Path, file: Path, other: SqlStore, tmp_path: Path, pack: bool
) -> None:
    plain = file.read_bytes()
    if pack:
        file.write_bytes(b"".join(compressed([plain])))
        assert file.stat().st_size < len(plain) / 2
        assert gzip.decompress(file.read_bytes()) == plain
    run, is_new = await import_run(other, file)
    assert is_new
    store = SqliteStore.open(written.parent)
    assert await read(other, "r1") == await read(store, "r1")
    assert (await other.find_request("q1")) == run
    await store.close()
    await other.close()
    assert exported(other.database, "r1", tmp_path / "again.run").read_bytes() == plain


async def test_a_run_that_is_there_already_is_left_alone(file: Path, other: SqlStore) -> None:
    first = await import_run(other, file)
    assert await import_run(other, file) == (first[0], False)
    assert len(await other.list_runs()) == 1
    await other.close()


async def test_another_run_of_the_same_id_is_not_touched_and_a_new_id_can_be_given(
    file: Path, other: SqlStore, make_run: MakeRun
) -> None:
    theirs = await other.create_run(make_run("r1"))
    with pytest.raises(AlreadyExists, match='another run "r1".*--new-id'):
        await import_run(other, file)
    assert await other.get_run("r1") == theirs
    run, _ = await import_run(other, file, new_id="r9")
    assert run.run_id == "r9"
    events = await other.read_events("r9", 0)
    assert {stored.event.run.run_id for stored in (events[0], events[-1])} == {"r9"}  # type: ignore[union-attr]
    assert len((await other.read_rows("r9")).rows) == 2 * ROWS
    assert {each.run_id for each in await other.list_runs()} == {"r1", "r9"}
    await other.close()


async def test_a_rescored_run_brings_the_examples_it_shares(
    written: Path, other: SqlStore, tmp_path: Path, make_run: MakeRun, make_row: MakeRow
) -> None:
    store = SqliteStore.open(written.parent)
    await store.create_run(make_run("r2", parent_run_id="r1"))
    assert await store.share_examples("r1", "r2")
    await store.append("r2", [RowScored(make_row(0))])
    expected = await read(store, "r2")
    await store.close()
    await import_run(other, exported(SqliteDatabase(written), "r2", tmp_path / "r2.run"))
    assert await read(other, "r2") == expected
    await other.close()


def nothing_is_left(place: Place) -> bool:
    tables = ("runs", "events", "examples", "run_labels", "run_systems")
    if place.is_sqlite:
        assert not list((place.home / "locks").iterdir())
    else:
        tables = (*tables, "leases")
    return not any(place.sql(f"SELECT count(*) FROM {name}")[0][0] for name in tables)


async def test_every_flipped_byte_of_a_file_is_refused_and_nothing_is_left(
    file: Path, other: SqlStore, elsewhere: Place
) -> None:
    whole = file.read_bytes()
    for at in range(0, len(whole), 211):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(BadRunFile, match=r"r1\.run (is damaged|is not a run|was written by)"):
            await import_run(other, file)
    await other.close()
    assert nothing_is_left(elsewhere)


async def test_a_file_that_ends_early_is_refused_wherever_it_ends(
    file: Path, other: SqlStore, elsewhere: Place
) -> None:
    whole = file.read_bytes()
    packed = b"".join(compressed([whole]))
    for data in (whole, packed):
        for size in range(40, len(data) - 1, len(data) // 12):
            file.write_bytes(data[:size])
            with pytest.raises(BadRunFile, match=r"r1\.run is damaged"):
                await import_run(other, file)
    file.write_bytes(whole + b"x")
    with pytest.raises(BadRunFile, match="goes on behind its end"):
        await import_run(other, file)
    await other.close()
    assert nothing_is_left(elsewhere)


async def test_frames_that_are_left_out_doubled_or_changed_are_refused(
    file: Path, other: SqlStore, elsewhere: Place
) -> None:
    frames = list(read_run_file(file))
    run = frames[0]
    assert isinstance(run, RunFrame)
    rows = [at for at, each in enumerate(frames) if isinstance(each, EventFrame) and each.system]
    examples = [at for at, each in enumerate(frames) if isinstance(each, ExampleFrame)]
    row = frames[rows[0]]
    assert isinstance(row, EventFrame)
    wrong = {
        "no run": frames[1:],
        "two runs": [*frames, run],
        "an event less": frames[:-1],
        "a row less": [each for at, each in enumerate(frames) if at != rows[0]],
        "an example less": [each for at, each in enumerate(frames) if at != examples[2]],
        "an event twice": [*frames, frames[-1]],
        "events first": [run, frames[-1], *frames[1:-1]],
        "another key": [
            EventFrame(row.seq, row.kind, row.time, row.system, 5, 0, False, row.head, row.body)
            if each is row
            else each
            for each in frames
        ],
    }
    for name, content in wrong.items():
        file.write_bytes(b"".join(encode_frames(content)))
        with pytest.raises(BadRunFile):
            await import_run(other, file)
            pytest.fail(name)
    await other.close()
    assert nothing_is_left(elsewhere)


async def test_what_is_no_run_or_a_newer_one_is_named(other: SqlStore, tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    for content, message in (
        (b"", "is not a run"),
        (b"SQLite format 3\0", "is not a run"),
        (b"cbench-run-0002\n", "newer cbench-server: its format is 2, .* reads 1. Upgrade"),
    ):
        path.write_bytes(content)
        with pytest.raises(BadRunFile, match=rf"x\.run .*{message}"):
            await import_run(other, path)
    with pytest.raises(BadRunFile, match=r"cannot read .*nowhere"):
        await import_run(other, tmp_path / "nowhere")
    await other.close()


def long_file(path: Path, run: Run, count: int) -> None:
    """Write a run with many rows, which takes many batches to import."""
    record = codec.encode_run(run)
    head = RunFrame(
        run.run_id, "", "", "succeeded", 1.0, 2.0, count, 0, False, False, ["a"], {}, record
    )
    rows = (
        codec.encode_event(RowScored(EvalRow("a", n, {"f1": 1.0}, 1, 1, ordinal=n)))
        for n in range(count)
    )
    frames = (
        EventFrame(n + 1, row.kind, 1.0, 0, n, 0, False, row.head, None)
        for n, row in enumerate(rows)
    )
    path.write_bytes(b"".join(encode_frames([head, *frames])))


async def test_an_import_that_is_killed_leaves_nothing(
    place: Place, tmp_path: Path, make_run: MakeRun
) -> None:
    file = tmp_path / "long.run"
    long_file(file, make_run("r1", state=RunState.SUCCEEDED), 20_000)
    store = place.open()
    child = preloaded.Popen([sys.executable, CHILD, place.argument, "import", str(file)])
    wait_until(lambda: place.sql("SELECT count(*) FROM events")[0][0] > 0)
    # While it lives, it is left alone, and nobody sees it.
    assert await store.finish_deletions() == []
    with pytest.raises(UnknownRun):
        await store.get_run("r1")
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert await store.list_runs() == []
    async with asyncio.timeout(60):
        while not (deleted := await store.finish_deletions()):
            assert not place.is_sqlite  # The kernel drops a lock; a lease lapses.
            await asyncio.sleep(0.1)
    assert deleted == ["r1"]
    assert nothing_is_left(place)
    run, is_new = await import_run(store, file)
    assert (run.completed_rows, is_new) == (20_000, True)
    await store.close()


async def test_a_store_with_a_quota_takes_no_import_beyond_it(file: Path, elsewhere: Place) -> None:
    store = elsewhere.open(max_bytes=1)
    with pytest.raises(StoreFull, match="max_store_mb"):
        await import_run(store, file)
    await store.close()
    assert nothing_is_left(elsewhere)


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        assert connection.execute(statement).rowcount > 0
    connection.commit()
    connection.close()


async def test_a_damaged_run_is_not_exported_but_salvaged(
    written: Path, other: SqlStore, tmp_path: Path
) -> None:
    change(
        written,
        "UPDATE events SET head = zeroblob(4) WHERE seq = 4",
        "UPDATE events SET body = x'00' WHERE seq = 6",
        "DELETE FROM events WHERE seq = 8",
        "UPDATE run_systems SET completed = 99",
        "UPDATE runs SET record = zeroblob(10), last_seq = 12345678901",
    )
    with (
        pytest.raises(DamagedRun, match="cbench runs salvage r1"),
        export_run(SqliteDatabase(written), "r1") as all_,
    ):
        b"".join(all_)
    with salvage_run(SqliteDatabase(written), "r1") as (survey, parts):
        (tmp_path / "saved.run").write_bytes(b"".join(parts))
    assert survey.sentence == "13 of 15 events (10 rows) and 6 of 6 examples can be read"
    assert {"event 4", "event 8", "the output of event 6"} <= set(survey.lost)
    run, _ = await import_run(other, tmp_path / "saved.run")
    assert (run.run_id, run.state, run.parent_run_id) == ("r1", RunState.FAILED, "r0")
    assert run.failure is not None
    assert run.failure.reason == "SALVAGED"
    assert "event 4" in run.notes[-1].text
    assert (run.completed_rows, run.last_seq) == (10, 13)
    rows = (await other.read_rows("r1", RowQuery(processed=True, original=True))).rows
    assert sum(row.processed is None for row in rows) == 1
    assert len(await other.read_examples("r1", 0, 100)) == ROWS
    await other.close()


async def test_what_the_index_has_lost_is_found_in_the_table(written: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(written)
    connection.execute("PRAGMA writable_schema = ON")
    page, size = (
        connection.execute(statement).fetchone()[0]
        for statement in (
            "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_events_1'",
            "PRAGMA page_size",
        )
    )
    connection.close()
    data = bytearray(written.read_bytes())
    data[(page - 1) * size : page * size] = bytes(size)
    written.write_bytes(data)
    with salvage_run(SqliteDatabase(written), "r1") as (survey, parts):
        (tmp_path / "saved.run").write_bytes(b"".join(parts))
    assert survey.sentence == "15 of 15 events (12 rows) and 6 of 6 examples can be read"


async def test_an_example_that_is_lost_is_named_to_who_asks_for_it_and_to_nobody_else(
    written: Path, other: SqlStore, tmp_path: Path
) -> None:
    change(written, "UPDATE examples SET body = zeroblob(4) WHERE ordinal = 2")
    with salvage_run(SqliteDatabase(written), "r1") as (survey, parts):
        (tmp_path / "saved.run").write_bytes(b"".join(parts))
    assert survey.lost == ["example 2"]
    run, _ = await import_run(other, tmp_path / "saved.run")
    assert run.failure is not None
    assert "0 events and 1 examples were lost" in run.failure.message
    assert len((await other.read_rows("r1")).rows) == 2 * ROWS
    assert [each.ordinal for each in await other.read_examples("r1", 0, 100)] == [0, 1]
    assert [each.ordinal for each in await other.read_examples("r1", 3, 100)] == [3, 4, 5]
    with pytest.raises(DamagedRun, match='example 2 of run "r1" is missing'):
        await other.read_rows("r1", RowQuery(original=True))
    await other.close()


@pytest.mark.parametrize("opened", [export_run, salvage_run])
def test_what_meets_who_takes_a_run_is_not_told_of_the_store(
    written: Path, opened: Callable[..., AbstractContextManager[object]]
) -> None:
    with pytest.raises(OSError, match="No space left on device: 'r1.run'"):
        raise OSError(28, "No space left on device", "r1.run")
