"""What is read is what was written, or an error says where it is not."""

import os
import random
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cbench_server.errors import StoreCorrupt, StoreError, StoreTooNew
from cbench_server.events import RowScored, Stored
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowQuery, SpooledExample
from cbench_server.spec import Run
from cbench_server.storage import database
from cbench_server.storage.database import connect
from cbench_server.storage.inspection import Inspection
from cbench_server.storage.run_export import Survey
from cbench_server.storage.run_files import salvage_run
from cbench_server.storage.schema import HEAD_REVISION
from cbench_server.storage.sqlite import SqliteStore

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]


@pytest.fixture
async def written(
    home: Path, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> Path:
    """A closed store with one run of twenty rows, some with long outputs."""
    store = SqliteStore.open(home)
    await store.create_run(make_run())
    await store.add_examples(
        "r1", [make_example(n, text="word " * n) for n in range(20)], complete=True
    )
    rows = [
        make_row(n, processed={"context": random.Random(n).randbytes(100 * n)}) for n in range(20)
    ]
    await store.append("r1", [RowScored(row) for row in rows])
    await store.close()
    return home / "cbench.db"


def salvaged(path: Path) -> AbstractContextManager[tuple[Survey, Iterator[bytes]]]:
    return salvage_run(database.SqliteDatabase(path), "r1")


async def read_all(home: Path) -> list[Any]:
    store = SqliteStore.open(home)
    try:
        events: list[Stored] = []
        while page_of_events := await store.read_events("r1", len(events), processed=True):
            events += page_of_events
        page = await store.read_rows("r1", RowQuery(max_bytes=10**9, processed=True, original=True))
        examples = await store.read_examples("r1", 0, 1000)
        return [events, page, examples]
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE examples SET body = x'00' WHERE ordinal = 3", "example 3 .* is damaged"),
        ("DELETE FROM examples WHERE ordinal = 3", "example 3 .* is missing"),
        ("DELETE FROM examples", "example 0 .* is missing"),
    ],
)
async def test_a_damaged_example_is_not_copied(
    written: Path, home: Path, make_run: MakeRun, statement: str, message: str
) -> None:
    change(written, statement)
    store = SqliteStore.open(home)
    await store.create_run(make_run("r2"))
    with pytest.raises(StoreCorrupt, match=message):
        await store.copy_examples("r1", "r2", 0, 100)
    assert await store.spooled("r2") == (0, False)
    await store.close()


async def test_an_example_that_is_gone_is_not_taken_for_the_end_of_what_is_loaded_yet(
    home: Path, make_run: MakeRun, make_example: MakeExample
) -> None:
    store = SqliteStore.open(home)
    await store.create_run(make_run())
    await store.add_examples("r1", [make_example(n) for n in range(6)])
    assert await store.read_examples("r1", 6, 10) == []
    change(home / "cbench.db", "DELETE FROM examples WHERE ordinal = 3")
    assert len(await store.read_examples("r1", 0, 10)) == 3
    with pytest.raises(StoreCorrupt, match="example 3 .* is missing"):
        await store.read_examples("r1", 3, 10)
    await store.close()


def change(path: Path, statement: str, *parameters: Any) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, parameters)
    connection.commit()
    connection.close()


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]


@pytest.mark.parametrize(
    "change_to",
    ["time = time + 1", "kind = 2", "failed = 1", "ordinal = 99", "repeat = 1", "body_sum = 1"],
)
async def test_a_changed_column_is_noticed(written: Path, change_to: str) -> None:
    change(written, f"UPDATE events SET {change_to} WHERE seq = 7")
    with pytest.raises(StoreCorrupt, match='event 7 of run "r1"'):
        await read_all(written.parent)


@pytest.mark.parametrize("column", ["head", "body"])
async def test_every_flipped_byte_of_a_row_is_noticed(written: Path, column: str) -> None:
    connection = sqlite3.connect(written)
    query = f"SELECT {column} FROM events WHERE seq = 4"
    (data,) = connection.execute(query).fetchone()
    connection.close()
    store = SqliteStore.open(written.parent)
    for position in range(len(data)):
        change(written, f"UPDATE events SET {column} = ? WHERE seq = 4", flipped(data, position))
        with pytest.raises(StoreCorrupt, match='event 4 of run "r1"'):
            await store.read_events("r1", 3, limit=1, processed=True)
    await store.close()


async def test_a_damaged_output_does_not_keep_the_head_from_being_read(written: Path) -> None:
    change(written, "UPDATE events SET body = x'00' WHERE seq = 4")
    store = SqliteStore.open(written.parent)
    assert len(await store.read_events("r1", 0)) == 21
    with pytest.raises(StoreCorrupt, match="event 4"):
        await store.read_events("r1", 0, processed=True)
    await store.close()


@pytest.mark.parametrize("column", ["dataset", "idx", "digest", "tokens", "body"])
async def test_a_changed_example_is_noticed(written: Path, column: str) -> None:
    change(written, f"UPDATE examples SET {column} = 'x' WHERE ordinal = 3")
    store = SqliteStore.open(written.parent)
    with pytest.raises(StoreCorrupt, match="example 3"):
        await store.read_examples("r1", 0, 100)
    await store.close()


async def test_a_missing_event_is_noticed(written: Path) -> None:
    change(written, "DELETE FROM events WHERE seq = 7")
    store = SqliteStore.open(written.parent)
    assert (await store.read_events("r1", 0))[-1].seq == 6
    with pytest.raises(StoreCorrupt, match="event 7 .* missing"):
        await store.read_events("r1", 6)
    await store.close()


async def test_a_changed_record_of_a_run_is_noticed(written: Path) -> None:
    change(written, "UPDATE runs SET record = substr(record, 1, 50)")
    store = SqliteStore.open(written.parent)
    with pytest.raises(StoreCorrupt, match='record of run "r1"'):
        await store.get_run("r1")
    await store.close()


async def test_a_byte_flipped_anywhere_in_the_file_is_never_read_as_truth(written: Path) -> None:
    expected = await read_all(written.parent)
    whole = written.read_bytes()
    generator = random.Random(7)
    noticed = 0
    for _ in range(150):
        written.write_bytes(flipped(whole, generator.randrange(len(whole))))
        try:
            assert await read_all(written.parent) == expected
        except StoreError:
            noticed += 1
        for leftover in written.parent.glob("cbench.db-*"):
            leftover.unlink()
    assert noticed > 20  # The rest was free space, or text that nothing depends on.


async def test_a_newer_schema_is_refused_with_the_way_out(written: Path) -> None:
    change(written, "UPDATE alembic_version SET version_num = '0999'")
    with pytest.raises(StoreTooNew, match=f"0999.*{HEAD_REVISION}.*Upgrade.*CBENCH_HOME") as caught:
        SqliteStore.open(written.parent)
    assert str(written) in str(caught.value)


async def test_a_schema_that_nobody_has_made_is_damage(written: Path) -> None:
    change(written, "UPDATE alembic_version SET version_num = '000$'")
    with pytest.raises(StoreCorrupt, match=r"which no cbench has made .*'000\$'") as caught:
        SqliteStore.open(written.parent)
    assert str(written) in str(caught.value)
    [damage] = Inspection().of_home(written.parent)
    assert "000$" in str(damage)


async def test_nothing_is_called_lost_of_a_store_of_another_version(written: Path) -> None:
    change(written, "UPDATE alembic_version SET version_num = '0999'")
    change(written, "ALTER TABLE events RENAME COLUMN time TO at")
    with pytest.raises(StoreTooNew, match=r"0999.*Upgrade"), salvaged(written):
        pass
    [damage] = Inspection().of_home(written.parent)
    assert damage.fix == "This need not be damage. The version that wrote it looks at it: " + (
        "cbench doctor --deep"
    )
    # One that is older is migrated when it is opened, which may not be possible.
    change(written, "UPDATE alembic_version SET version_num = '0001'")
    told = pytest.raises(StoreCorrupt, match=r"has the schema 0001.* doctor --deep says why")
    with told, salvaged(written):
        pass


@pytest.mark.parametrize("version", ["'0999'", "'0001'", "x'00'"])
async def test_a_damaged_version_keeps_no_run_from_being_saved(written: Path, version: str) -> None:
    change(written, f"UPDATE alembic_version SET version_num = {version}")
    with salvaged(written) as (survey, _):
        assert survey.lost == []


@pytest.mark.parametrize(
    "content", [b"not a database, but longer than a header" * 50, b"SQLite format 3\0" + b"x" * 500]
)
async def test_a_file_that_is_no_database_is_named(home: Path, content: bytes) -> None:
    home.mkdir()
    (home / "cbench.db").write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"cbench\.db is damaged .* Move it aside"):
        SqliteStore.open(home)


async def test_a_truncated_file_is_named(written: Path) -> None:
    os.truncate(written, written.stat().st_size // 2)
    with pytest.raises(StoreCorrupt, match="damaged"):
        await read_all(written.parent)


async def test_the_database_of_another_program_is_left_alone(home: Path) -> None:
    home.mkdir()
    change(home / "cbench.db", "CREATE TABLE theirs (x)")
    with pytest.raises(StoreCorrupt, match="other tables"):
        SqliteStore.open(home)


async def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file/home cannot be written"):
        SqliteStore.open(tmp_path / "file" / "home")


async def test_a_read_only_home_is_named(home: Path) -> None:
    home.mkdir(mode=0o500)
    if os.access(home, os.W_OK):
        pytest.skip("this user, such as root, may write everywhere")
    with pytest.raises(StoreError, match="cannot be written"):
        SqliteStore.open(home)


async def test_a_read_only_file_is_named(written: Path) -> None:
    written.chmod(0o400)
    if os.access(written, os.W_OK):
        pytest.skip("this user, such as root, may write everywhere")
    with pytest.raises(StoreError, match=r"cbench\.db cannot be written"):
        SqliteStore.open(written.parent)


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Make the kernel refuse longer files, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_what_the_disk_refuses_is_left_out_whole_and_can_be_written_later(
    home: Path, make_run: MakeRun, make_row: MakeRow
) -> None:
    store = SqliteStore.open(home)
    await store.create_run(make_run())
    await store.append("r1", [RowScored(make_row(0))])
    rows = [make_row(n, processed={"context": os.urandom(50_000)}) for n in range(1, 101)]
    limit = 2_000_000
    with file_size_limit(limit), pytest.raises(StoreError, match=r"cbench\.db"):
        await store.append("r1", [RowScored(row) for row in rows])
    assert (await store.get_run("r1")).last_seq == 2
    assert await store.append("r1", [RowScored(row) for row in rows]) == 102
    events = await store.read_events("r1", 2, max_bytes=10**9, processed=True)
    assert [stored.event for stored in events] == [RowScored(row) for row in rows]
    await store.close()


async def test_a_full_disk_is_told_apart(
    home: Path, make_run: MakeRun, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore.open(home)
    await store.create_run(make_run())
    await store.close()

    def connect_small(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
        # SQLite reports a file at its page limit as it reports a full disk.
        connection = connect(path, read_only=read_only)
        connection.execute("PRAGMA max_page_count = 100")
        return connection

    monkeypatch.setattr(database, "connect", connect_small)
    store = SqliteStore.open(home)
    rows = [make_row(n, processed={"context": os.urandom(50_000)}) for n in range(20)]
    with pytest.raises(StoreError, match="no space is left"):
        await store.append("r1", [RowScored(row) for row in rows])
    assert (await store.get_run("r1")).last_seq == 1
    assert await store.append("r1", [RowScored(rows[0])]) == 2
    await store.close()
