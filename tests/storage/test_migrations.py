"""A new store and one that was migrated both have the schema that the code uses."""

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from cbench_server.storage import migrate, schema
from cbench_server.storage.database import connect
from cbench_server.storage.sqlite import SqliteStore


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
        assert compare_metadata(context, schema.metadata) == []
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
