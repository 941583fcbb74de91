"""What is of a damaged run is told from what is of others, and none is saved or deleted for it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_server.errors import StoreCorrupt
from cbench_server.events import RowScored, RunFinished
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowQuery, SpooledExample
from cbench_server.spec import Run, RunState
from cbench_server.storage.database import SqliteDatabase
from cbench_server.storage.inspection import Damage, Inspection
from cbench_server.storage.run_files import import_run, salvage_run
from cbench_server.storage.run_format import RunFrame, read_run_file
from cbench_server.storage.sqlite import SqliteStore
from tests.fixtures.stores import Place

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]

SIZES = {"r1": 5, "r2": 8, "r3": 5}
FAR = 1 << 40


@pytest.fixture
async def path(
    tmp_path: Path, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> Path:
    """The file of a store with three runs, each of which says in all its parts whose they are."""
    store = SqliteStore.open(tmp_path / "home")
    for run_id, size in SIZES.items():
        labels = {"of": run_id}
        run = make_run(run_id, labels=labels, request_id=f"q{run_id}", state=RunState.RUNNING)
        await store.create_run(run)
        examples = [make_example(n, text=f"{run_id} {n}") for n in range(size)]
        await store.add_examples(run_id, examples, complete=True)
        rows = [make_row(n, processed={"answer": f"{run_id} {n}"}) for n in range(size)]
        await store.append(run_id, [RowScored(row) for row in rows])
        finished = RunFinished(await store.get_run(run_id))
        done = {"state": RunState.SUCCEEDED, "end_time": 150.5, "systems": ("a",)}
        await store.append(run_id, [finished], update=done)
    await store.close()
    return tmp_path / "home" / "cbench.db"


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def swapped(table: str, column: str, where: str = "1") -> tuple[str, ...]:
    """Give what is of the first two runs to one another."""
    return tuple(
        f"UPDATE {table} SET {column} = {new} WHERE {column} = {old} AND {where}"
        for old, new in ((1, -9), (2, 1), (-9, 2))
    )


IDS = swapped("runs", "id")
NAMES = (
    "UPDATE runs SET run_id = 'x' WHERE id = 1",
    "UPDATE runs SET run_id = 'r1' WHERE id = 2",
    "UPDATE runs SET run_id = 'r2' WHERE id = 1",
)
STATES = ("UPDATE runs SET state = 'failed' WHERE id < 3",)
RECORDS = ("UPDATE runs SET record = zeroblob(5) WHERE id < 3",)
BEGINNINGS = ("UPDATE events SET head = zeroblob(4) WHERE seq = 1 AND run < 3",)
ENDS = ("UPDATE events SET head = zeroblob(4) WHERE seq > 1 AND system IS NULL AND run < 3",)
# In a ring: each run has the number of the next.
RING = (
    "UPDATE runs SET id = id + 100",
    "UPDATE runs SET id = 1 + (id - 100) % 3",
)


async def read(store: SqliteStore, run_id: str) -> list[object]:
    """Read all of a run but what names the store's own moments."""
    return [
        await store.get_run(run_id),
        await store.read_events(run_id, 0, processed=True, max_bytes=10**9),
        await store.read_rows(run_id, RowQuery(processed=True, original=True)),
        await store.read_examples(run_id, 0, 100),
    ]


async def whole(path: Path) -> dict[str, list[object]]:
    store = SqliteStore.open(path.parent)
    found = {run_id: await read(store, run_id) for run_id in SIZES}
    await store.close()
    return found


def saved(path: Path, run_id: str, to: Path) -> list[str]:
    """Salvage a run, and return what was lost."""
    with salvage_run(SqliteDatabase(path), run_id) as (survey, parts):
        to.write_bytes(b"".join(parts))
    return survey.lost


def inspected(path: Path) -> list[Damage]:
    return list(Inspection().of_home(path.parent))


@pytest.mark.parametrize(
    "statements",
    [
        IDS,
        NAMES,
        (*IDS, *NAMES),
        RING,
        ("UPDATE runs SET id = 65 WHERE id = 1",),
        (f"UPDATE runs SET id = {FAR} WHERE id = 1",),
        swapped("events", "run"),
        swapped("examples", "run"),
        swapped("events", "run", "seq = 3"),
        swapped("examples", "run", "ordinal = 3"),
        ("UPDATE events SET run = 77 WHERE run = 1",),
    ],
    ids=[
        *("ids", "names", "names-and-ids", "ring", "id-elsewhere", "id-far-away"),
        *("events", "examples", "an-event", "an-example", "events-of-nobody"),
    ],
)
async def test_what_is_under_anothers_number_or_name_is_saved_whole(
    path: Path, tmp_path: Path, statements: tuple[str, ...]
) -> None:
    expected = await whole(path)
    change(path, *statements)
    assert "run r1" in {each.subject for each in inspected(path)}
    store = SqliteStore.open(tmp_path / "other")
    for run_id in SIZES:
        assert saved(path, run_id, tmp_path / "r.run") == []
        await import_run(store, tmp_path / "r.run")
        assert await read(store, run_id) == expected[run_id]
    await store.close()


@pytest.mark.parametrize(
    "statements",
    [
        (*IDS, *STATES),
        (*IDS, *STATES, *RECORDS),
        (*IDS, *STATES, *BEGINNINGS),
        (*NAMES, *STATES),
        ("DELETE FROM runs WHERE id = 1",),
    ],
    ids=["ids", "ids-and-records", "ids-and-first-events", "names", "row-gone"],
)
async def test_events_tell_whose_they_are_where_the_row_does_not(
    path: Path, tmp_path: Path, statements: tuple[str, ...]
) -> None:
    expected = await whole(path)
    change(path, *statements)
    assert "run r1" in {each.subject for each in inspected(path)}
    store = SqliteStore.open(tmp_path / "other")
    for run_id, size in SIZES.items():
        saved(path, run_id, tmp_path / "r.run")
        run, _ = await import_run(store, tmp_path / "r.run", new_id=f"new-{run_id}")
        assert run.spec.labels == {"of": run_id}
        found = await read(store, run.run_id)
        assert found[2:] == expected[run_id][2:]
        assert run.completed_rows == size
    await store.close()


async def test_what_is_not_told_is_refused_and_named(path: Path, tmp_path: Path) -> None:
    change(path, *IDS, *STATES, *BEGINNINGS, *ENDS)
    for run_id in ("r1", "r2"):
        with pytest.raises(StoreCorrupt, match=f'cannot be told what is of run "{run_id}"'):
            saved(path, run_id, tmp_path / "r.run")
    assert saved(path, "r3", tmp_path / "r.run") == []
    refused = {each.subject: each for each in inspected(path) if "cannot be told" in each.fix}
    assert set(refused) == {"run r1", "run r2"}
    assert "salvage" not in refused["run r1"].message + refused["run r1"].fix


async def test_a_single_run_whose_row_and_events_are_damaged_is_saved_without_them(
    path: Path, tmp_path: Path
) -> None:
    first = [f"{each} AND run = 1" for each in (*BEGINNINGS, *ENDS)]
    change(path, "UPDATE runs SET state = 'failed' WHERE id = 1", *first)
    saved(path, "r1", tmp_path / "r.run")
    frame = next(read_run_file(tmp_path / "r.run"))
    assert isinstance(frame, RunFrame)
    assert (frame.run_id, frame.last_seq, frame.examples) == ("r1", 7, 5)


@pytest.mark.parametrize("place", ["seq = seq", "ordinal = ordinal"])
async def test_a_row_at_a_place_far_away_costs_no_memory_and_no_time(
    path: Path, tmp_path: Path, place: str
) -> None:
    table = "events" if "seq" in place else "examples"
    change(
        path,
        "UPDATE runs SET state = 'failed' WHERE id = 1",
        f"UPDATE {table} SET {place} + {FAR} WHERE run = 1 AND {place.split()[0]} = 3",
    )
    assert "run r1" in {each.subject for each in inspected(path)}
    lost = saved(path, "r1", tmp_path / "r.run")
    assert lost[1:] == ["event 3" if table == "events" else "example 3"]


@pytest.mark.parametrize("statements", [IDS, NAMES, (*IDS, *NAMES), RING])
async def test_a_deletion_takes_nothing_of_another_run(
    path: Path, statements: tuple[str, ...]
) -> None:
    expected = await whole(path)
    change(path, *statements)
    store = SqliteStore.open(path.parent)
    assert await store.delete_run("r1")
    # What the checksums tell is put right on the way.
    for run_id in ("r2", "r3"):
        assert await read(store, run_id) == expected[run_id]
    assert [run.run_id for run in await store.list_runs()] == ["r3", "r2"]
    await store.close()
    assert inspected(path) == []


async def test_a_run_whose_name_was_damaged_is_deleted_by_the_name_it_has(path: Path) -> None:
    change(path, "UPDATE runs SET run_id = 's1' WHERE id = 1")
    store = SqliteStore.open(path.parent)
    assert await store.delete_run("s1")
    await store.close()
    assert inspected(path) == []


async def test_a_deletion_that_would_take_what_is_anothers_is_refused(path: Path) -> None:
    change(path, *IDS, *STATES)
    store = SqliteStore.open(path.parent)
    with pytest.raises(StoreCorrupt, match="what has its number is of another run"):
        await store.delete_run("r1")
    await store.close()
    assert {"run r1", "run r2"} <= {each.subject for each in inspected(path)}


async def test_swapped_names_are_told_in_every_database(
    place: Place, make_run: MakeRun, make_row: MakeRow
) -> None:
    store = place.open()
    for run_id in ("r1", "r2"):
        await store.create_run(make_run(run_id, state=RunState.RUNNING))
        row = make_row(0, processed={"answer": run_id})
        await store.append(run_id, [RowScored(row)], update={"state": RunState.SUCCEEDED})
    for statement in NAMES:
        place.sql(statement)
    with salvage_run(store.database, "r1") as (survey, _):
        assert (survey.run.run_id, survey.lost) == ("r1", [])
    assert await store.delete_run("r1")
    [row] = (await store.read_rows("r2", RowQuery(processed=True))).rows
    assert row.processed == {"answer": "r2"}
    assert [run.run_id for run in await store.list_runs()] == ["r2"]
    await store.close()


def test_a_row_whose_number_in_the_table_is_far_away_is_saved_in_time(
    path: Path, tmp_path: Path
) -> None:
    change(
        path,
        f"UPDATE events SET rowid = {FAR << 20}, run = 77 WHERE run = 1 AND seq = 3",
        "DELETE FROM events WHERE run = 1 AND seq = 4",
    )
    assert saved(path, "r1", tmp_path / "r.run") == ["event 4"]
