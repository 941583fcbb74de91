"""`cbench doctor --deep` finds every kind of damage, and says what can be saved."""

import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.runs.store import SpooledExample
from cbench_server.spec import Run, RunState
from cbench_server.storage.database import SqliteDatabase
from cbench_server.storage.inspection import Damage, Inspection
from cbench_server.storage.run_files import salvage_run
from cbench_server.storage.schema import intents, metadata
from cbench_server.storage.sqlite import SqliteStore
from cbench_server.storage.sums import row_sum
from cbench_server.storage.uploads import UploadStore
from tests.fixtures.stores import Place
from tests.storage.cells import flip

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]

COLUMNS = [
    (table.name, column.name)
    for table in metadata.sorted_tables
    for column in table.c
    if table.name != "shared_examples"
]
SIZE = 30


async def fill(home: Path, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample) -> None:
    store = SqliteStore.open(home)
    for run_id in ("r1", "r2"):
        labels = {"a": "b"}
        run = make_run(run_id, labels=labels, request_id=f"q{run_id}", state=RunState.RUNNING)
        await store.create_run(run)
        await store.add_examples(run_id, [make_example(n) for n in range(SIZE)], complete=True)
        rows = [
            make_row(n, failed=n == 3, processed={"answer": random.Random(n).randbytes(300)})
            for n in range(SIZE)
        ]
        done = {"state": RunState.SUCCEEDED, "end_time": 150.5, "systems": ("a",)}
        await store.append(run_id, [RowScored(row) for row in rows], update=done)
    await store.close()
    with UploadStore(home).writer() as upload:
        upload.add({"id": 1, "text": "words " * 50})
        upload.finish()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inspected") / "home"


@pytest.fixture
async def path(
    home: Path, tmp_path: Path, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> Path:
    """The file of a store of its own, with two runs and an upload."""
    if not home.exists():
        await fill(home, make_run, make_row, make_example)
    shutil.copytree(home, tmp_path / "copy")
    return tmp_path / "copy" / "cbench.db"


OTHER_INTENT = {"run_id": "'r2'", "kind": "'delete'", "arguments": "x'90'", "answer": "x'90'"}


def inspected(path: Path) -> list[Damage]:
    return list(Inspection().of_home(path.parent))


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_sound_store_is_read_to_its_last_row(path: Path) -> None:
    inspection = Inspection()
    assert list(inspection.of_home(path.parent)) == []
    assert inspection == Inspection(runs=2, events=2 * (SIZE + 1), examples=2 * SIZE, uploads=1)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_another_value_in_any_column_is_found(path: Path, table: str, column: str) -> None:
    connection = sqlite3.connect(path)
    own = "id = 1" if table == "runs" else "run = 1"
    place = f"{table} WHERE {own} ORDER BY rowid LIMIT 1 OFFSET {0 if 'run' in table else 5}"
    rowid, value = connection.execute(f'SELECT rowid, "{column}" FROM {place}').fetchone()
    if isinstance(value, str | bytes):
        new: object = value[:-1] + ("~" if isinstance(value, str) else bytes([value[-1] ^ 8]))
    else:
        new = (value or 0) + 64
    connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE rowid = {rowid}', (new,))
    connection.commit()
    connection.close()
    found = inspected(path)
    assert [each for each in found if each.is_certain]
    assert not [each for each in found if each.subject == "run r2"]


@pytest.mark.parametrize("column", [column.name for column in intents.c])
async def test_another_value_in_an_intent_is_found(path: Path, column: str) -> None:
    store = SqliteStore.open(path.parent)
    await store.intents.ask("r1", "cancel", {})
    await store.close()
    assert inspected(path) == []
    # An empty list, where an empty map was; an answer, where none was.
    change(path, f"UPDATE intents SET {column} = {OTHER_INTENT.get(column, f'{column} + 64')}")
    (found,) = inspected(path)
    assert found.is_certain
    assert "1 rows of the table intents" in found.message


@pytest.mark.parametrize("column", [column.name for column in metadata.tables["shared_examples"].c])
async def test_another_value_in_who_shares_examples_is_found(
    path: Path, make_run: MakeRun, column: str
) -> None:
    store = SqliteStore.open(path.parent)
    await store.create_run(make_run("r3", state=RunState.SUCCEEDED))
    assert await store.share_examples("r1", "r3")
    await store.close()
    assert inspected(path) == []
    change(path, f"UPDATE shared_examples SET {column} = {column} + 64")
    found = inspected(path)
    assert [each for each in found if each.is_certain]
    assert not [each for each in found if each.subject in ("run r1", "run r2")]


def test_what_can_be_saved_is_said_with_how(path: Path) -> None:
    change(
        path,
        "UPDATE events SET head = zeroblob(3) WHERE run = 1 AND seq = 7",
        "UPDATE examples SET body = zeroblob(3) WHERE run = 1 AND ordinal = 2",
    )
    [damage] = inspected(path)
    assert damage.subject == "run r1"
    assert "event 7; example 2" in damage.message
    assert damage.fix == (
        f"{SIZE} of {SIZE + 1} events ({SIZE - 1} rows) and {SIZE - 1} of {SIZE} examples can be "
        "read. Save them: cbench runs salvage r1 -o r1.run"
    )


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM events WHERE run = 1 AND seq = 9", "event 9 .* missing"),
        ("DELETE FROM events WHERE run = 1 AND seq > 9", "event 10 .* missing"),
        ("DELETE FROM examples WHERE run = 1 AND ordinal = 9", "example 9 .* missing"),
        ("DELETE FROM run_labels WHERE run = 1", "a label .* missing"),
        ("DELETE FROM run_systems WHERE run = 1", "counted for a system .* missing"),
        ("UPDATE run_labels SET value = 'c' WHERE run = 1", "a label .* damaged"),
        ("UPDATE run_systems SET name = 'c' WHERE run = 1", "counted for a system .* damaged"),
        ("INSERT INTO run_labels VALUES (1, 'x', 'y', 3)", "1 rows of the table run_labels"),
        ("INSERT INTO run_systems VALUES (1, 9, 'x', 0, 0, 0, 3)", "1 rows of the table run_sys"),
        (
            "INSERT INTO events SELECT run, seq + 99, kind, time, system, ordinal, repeat + 1, "
            "failed, head_sum, body_sum, head, body FROM events WHERE run = 1 AND seq = 5",
            "1 rows of the table events",
        ),
        (
            "INSERT INTO examples SELECT run, ordinal + 99, dataset, idx, digest, tokens, sum, "
            "body FROM examples WHERE run = 1 AND ordinal = 5",
            "1 rows of the table examples",
        ),
        ("DELETE FROM runs WHERE id = 1", "30 rows of the table examples .* belong to no run"),
    ],
)
def test_what_is_missing_or_left_over_is_found(path: Path, statement: str, message: str) -> None:
    change(path, statement)
    assert any(_matches(each, message) for each in inspected(path))


def _matches(damage: Damage, message: str) -> bool:
    return re.search(message, damage.message) is not None


def test_a_counter_whose_checksum_is_right_is_counted_again(path: Path) -> None:
    total = row_sum((1, 0, "a", SIZE - 1, 1, 0))
    change(path, f"UPDATE run_systems SET completed = {SIZE - 1}, sum = {total} WHERE run = 1")
    [damage] = inspected(path)
    assert 'counted for system "a"' in damage.message


@pytest.mark.parametrize("index", ["row_key", "failed_rows", "events_but_rows"])
def test_an_entry_that_an_index_lacks_is_found(path: Path, index: str) -> None:
    connection = sqlite3.connect(path)
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (index,)).fetchone()
    connection.execute("PRAGMA writable_schema = ON")
    # An index that leaves rows out, under the schema of one that has them all.
    connection.execute(f"DROP INDEX {index}")
    connection.execute(f"{sql} AND seq < 1")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, index))
    connection.commit()
    connection.close()
    assert any(f"missing from index {index}" in each.message for each in inspected(path))


@pytest.mark.parametrize("damage", ["zeroed", "overwritten"])
def test_a_damaged_page_is_found_wherever_it_is(path: Path, damage: str) -> None:
    whole = path.read_bytes()
    size = 4096
    for start in range(size, len(whole), size * 3):
        page = whole[start : start + size]
        new = bytes(size) if damage == "zeroed" else whole[-size:]
        if page == new or not any(page):
            continue
        path.write_bytes(whole[:start] + new + whole[start + size :])
        found = inspected(path)
        for leftover in path.parent.glob("cbench.db-*"):
            leftover.unlink()
        assert [each for each in found if each.is_certain], start


def test_pages_in_each_others_place_are_found(path: Path) -> None:
    whole = path.read_bytes()
    size = 4096
    for start in range(size, len(whole) - size, size):
        one, other = whole[start : start + size], whole[start + size : start + 2 * size]
        if one == other:
            continue
        path.write_bytes(whole[:start] + other + one + whole[start + 2 * size :])
        assert [each for each in inspected(path) if each.is_certain], start


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_file_that_is_cut_off_is_found(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))
    assert any("is cut off" in each.message for each in inspected(path))


@pytest.mark.parametrize("share", [0.6, 0.9])
def test_what_is_left_of_a_file_that_was_cut_off_is_saved(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))
    before = path.read_bytes()
    advised = [each.fix for each in inspected(path) if "Save them" in each.fix]
    assert advised
    for advice in advised:
        [told, run_id] = re.findall(r"^(\d+) of|salvage (\w+)", advice)
        with salvage_run(SqliteDatabase(path), run_id[1]) as (survey, parts):
            saved = b"".join(parts)
        assert saved
        assert survey.sentence.startswith(f"{told[0]} of ")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("part", "statement"),
    [
        ("table run_labels", "DROP TABLE run_labels"),
        ("table intents", "DROP TABLE intents"),
        ("index row_key", "DROP INDEX row_key"),
        ("column body of table events", "ALTER TABLE events RENAME COLUMN body TO boby"),
    ],
)
def test_a_part_of_the_schema_that_is_gone_is_found(path: Path, part: str, statement: str) -> None:
    change(path, statement)
    assert any(each.message.endswith(f"has no {part}") for each in inspected(path))


def test_a_schema_that_is_not_what_it_is_said_to_be_is_damage(path: Path) -> None:
    change(path, "UPDATE alembic_version SET version_num = '0001'")
    [damage] = inspected(path)
    assert "its schema is not the 0001 it is said to be" in damage.message
    assert "cbench runs salvage RUN" in damage.fix


def test_a_file_that_is_no_store_is_found(path: Path) -> None:
    path.write_bytes(b"junk" * 5000)
    [damage] = inspected(path)
    assert "is damaged or is not a cbench store" in damage.message
    assert "no run can be read" in damage.fix


async def test_damage_in_the_write_ahead_log_is_found_while_it_is_there(
    tmp_path: Path, make_run: MakeRun, make_row: MakeRow
) -> None:
    store = SqliteStore.open(tmp_path / "live")
    await store.create_run(make_run())
    for n in range(5):
        await store.append("r1", [RowScored(make_row(n))])
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    await store.close()
    log = tmp_path / "killed" / "cbench.db-wal"
    size = log.stat().st_size
    flip(log, size // 2, 3)
    found = inspected(tmp_path / "killed" / "cbench.db")
    assert any("commits from that place on are lost" in each.message for each in found), (
        found,
        size,
    )


def test_a_damaged_upload_is_found(path: Path) -> None:
    [upload] = (path.parent / "uploads").iterdir()
    flip(upload, upload.stat().st_size // 2, 1)
    [damage] = inspected(path)
    assert damage.subject == "upload"
    assert upload.name in damage.message


async def test_a_deletion_is_called_cut_off_once_nobody_is_at_it(
    place: Place, make_run: MakeRun
) -> None:
    store = place.open()
    await store.create_run(make_run("r1", state=RunState.SUCCEEDED))
    claim = await store.owners.acquire("r1")
    assert claim is not None
    await store.writer.write(lambda write: write.mark_deleted("r1"))
    assert list(Inspection().of_store(place.home, place.address)) == []
    # Who looks keeps nobody from a run.
    await store.owners.release(claim)
    [leftover] = Inspection().of_store(place.home, place.address)
    assert (leftover.subject, leftover.is_certain) == ("leftover", False)
    assert await store.finish_deletions() == ["r1"]
    await store.close()
    assert list(Inspection().of_store(place.home, place.address)) == []
