"""A new store and one that was migrated both have the schema that the code uses."""

import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, create_engine

from cbench_server.errors import DamagedRun, StoreFull
from cbench_server.spec import Run, RunState
from cbench_server.storage import migrate, schema
from cbench_server.storage.database import connect
from cbench_server.storage.sqlite import SqliteStore
from cbench_server.storage.sums import row_sum
from tests.fixtures import preloaded
from tests.fixtures.stores import Place

OLD_STORE = Path(__file__).parents[1] / "compatibility" / "store-0001.tar.xz"


def test_the_newest_migration_is_the_one_the_code_knows() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD_REVISION]


@pytest.mark.parametrize("make", [migrate.create, migrate.upgrade], ids=["new", "migrated"])
def test_a_store_has_the_tables_of_the_schema(
    make: Callable[[sqlite3.Connection], None], tmp_path: Path
) -> None:
    connection = connect(tmp_path / "made.db")
    make(connection)
    connection.close()
    engine = create_engine(f"sqlite:///{tmp_path / 'made.db'}")
    with engine.connect() as session:
        context = MigrationContext.configure(session)
        whole = MetaData()
        for part in (schema.metadata, schema.asked_metadata):
            for table in part.tables.values():
                table.to_metadata(whole)
        assert compare_metadata(context, whole) == []
    engine.dispose()


def test_a_new_store_is_what_all_migrations_make_of_an_empty_file(tmp_path: Path) -> None:
    made = []
    for make in (migrate.create, migrate.upgrade):
        connection = connect(tmp_path / f"{make.__name__}.db")
        make(connection)
        made.append((objects(connection), revision(connection)))
        connection.close()
    new, migrated = made
    assert new == migrated
    assert new[1] == [(schema.HEAD_REVISION,)]


def objects(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Return tables and indexes with their SQL, in which white space means nothing."""
    found = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master")
    return {(kind, name): "".join(sql.split()) for kind, name, sql in found}


def revision(connection: sqlite3.Connection) -> list[tuple[str]]:
    return connection.execute("SELECT version_num FROM alembic_version").fetchall()


def test_a_process_killed_while_it_makes_a_store_leaves_it_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "CREATE", (*migrate.CREATE, "INSERT INTO nowhere VALUES (1)"))
    connection = connect(tmp_path / "made.db")
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate.create(connection)
    assert objects(connection) == {}
    connection.close()


def test_committed_statements_are_those_of_the_schema() -> None:
    root = Path(migrate.__file__).parents[2]
    check = [sys.executable, root / "scripts" / "gen_statements.py", "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A home that version 0.1.0 wrote."""
    with tarfile.open(OLD_STORE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "home"


async def test_an_old_store_gets_its_checksums(old: Path) -> None:
    store = SqliteStore.open(old)
    runs = await store.list_runs()
    await store.close()
    assert len(runs) == 5
    assert not any(run.damage for run in runs)
    connection = sqlite3.connect(old / "cbench.db")
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


KILLED = """
import os, signal, sys
from pathlib import Path
from cbench_server.storage import migrate
from cbench_server.storage.database import connect

def watch(statement):
    if statement.strip().startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

path = Path(sys.argv[1])
connection = connect(path)
connection.set_trace_callback(watch)
migrate.migrate(connection, path)
"""


@pytest.mark.parametrize(
    "moment",
    ["CREATE TABLE shared", "ALTER TABLE run_labels", "INSERT INTO runs", "DROP TABLE", "COMMIT"],
)
async def test_a_migration_that_is_killed_anywhere_starts_again(
    old: Path, tmp_path: Path, moment: str
) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    command = [sys.executable, tmp_path / "killed.py", old / "cbench.db", moment]
    assert preloaded.run(command, check=False).returncode == -signal.SIGKILL
    store = SqliteStore.open(old)
    runs = await store.list_runs()
    await store.close()
    assert len(runs) == 5
    assert not any(run.damage for run in runs)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE runs SET state = 'cancelled' WHERE id = 1",
        "UPDATE runs SET end_time = end_time + 1 WHERE id = 1",
        "UPDATE runs SET last_seq = last_seq + 4 WHERE id = 1",
        "UPDATE runs SET record = zeroblob(9) WHERE id = 1",
        "UPDATE run_labels SET value = 'rod' WHERE run = 1",
        "UPDATE run_systems SET failed = failed + 1 WHERE run = 1",
        "DELETE FROM run_systems WHERE run = 1",
    ],
)
async def test_what_was_damaged_before_is_damaged_after_a_migration(old: Path, damage: str) -> None:
    connection = sqlite3.connect(old / "cbench.db")
    (run_id,) = connection.execute("SELECT run_id FROM runs WHERE id = 1").fetchone()
    assert connection.execute(damage).rowcount
    connection.commit()
    connection.close()
    store = SqliteStore.open(old)
    assert [run.run_id for run in await store.list_runs() if run.damage] == [run_id]
    with pytest.raises(DamagedRun, match=run_id):
        await store.get_run(run_id)
    await store.close()


def test_a_disk_that_is_full_leaves_an_old_store_as_it_was(old: Path) -> None:
    path = old / "cbench.db"
    with closing(connect(path)) as connection:
        used = connection.pragma("page_count")
        connection.execute(f"PRAGMA max_page_count = {used + 2}")
        with pytest.raises(StoreFull, match=r"no space is left to write .*cbench\.db"):
            migrate.migrate(connection, path)
        assert migrate.revision_of(connection, path) == "0001"
    with closing(connect(path)) as connection:
        migrate.migrate(connection, path)
        assert migrate.revision_of(connection, path) == schema.HEAD_REVISION


async def test_the_file_is_made_for_its_owner_alone_with_the_settings_we_rely_on(
    home: Path,
) -> None:
    store = SqliteStore.open(home)
    connection = sqlite3.connect(home / "cbench.db")
    settings = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "auto_vacuum")
    ]
    connection.close()
    await store.close()
    assert settings == ["wal", 2]
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "cbench.db").stat().st_mode) == 0o600


_HEAD = (
    "id, run_id, request_id, spec_digest, state, create_time, end_time, last_seq, examples, "
    "spool_complete, {asked}, deleted, pinned, systems, labels, record_sum"
)


async def test_what_was_asked_of_owners_before_there_were_intents_is_asked_still(
    place: Place, make_run: Callable[..., Run]
) -> None:
    store = place.open()
    for run_id in ("r1", "r2", "r3"):
        await store.create_run(make_run(run_id, state=RunState.RUNNING))
    await store.close()
    # As revision 0003 had it: r2 is to be cancelled, and r3 is damaged.
    place.sql("ALTER TABLE runs ADD COLUMN cancel_requested BOOLEAN NOT NULL DEFAULT FALSE")
    place.sql("UPDATE runs SET cancel_requested = TRUE WHERE run_id = 'r2'")
    for head in place.sql(f"SELECT {_HEAD.format(asked='cancel_requested')} FROM runs"):
        place.sql(f"UPDATE runs SET sum = {row_sum(head)} WHERE id = {head[0]}")
    place.sql("UPDATE runs SET labels = 7 WHERE run_id = 'r3'")
    place.sql("DROP TABLE intents")
    place.sql("UPDATE alembic_version SET version_num = '0003'")
    store = place.open()
    assert place.sql("SELECT version_num FROM alembic_version") == [(schema.HEAD_REVISION,)]
    assert (await store.get_run("r1")).state is RunState.RUNNING
    [intent] = await store.intents.unanswered()
    assert (intent.run_id, intent.kind) == ("r2", "cancel")
    with pytest.raises(DamagedRun):
        await store.get_run("r3")
    await store.close()
