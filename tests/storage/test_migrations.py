"""The migrations lead to the schema that the code uses."""

import sqlite3
import stat
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from cbench_server.storage import migrate, schema
from cbench_server.storage.sqlite import SqliteStore


def test_the_newest_migration_is_the_one_the_code_knows() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD_REVISION]


async def test_migrations_make_the_tables_of_the_schema(home: Path) -> None:
    await SqliteStore.open(home).close()
    engine = create_engine(f"sqlite:///{home / 'cbench.db'}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


async def test_partial_indexes_are_those_of_the_schema(home: Path, tmp_path: Path) -> None:
    await SqliteStore.open(home).close()
    plain = create_engine(f"sqlite:///{tmp_path / 'plain.db'}")
    schema.metadata.create_all(plain)
    plain.dispose()
    assert indexes(home / "cbench.db") == indexes(tmp_path / "plain.db")


def indexes(path: Path) -> dict[str, str]:
    connection = sqlite3.connect(path)
    query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    found = dict(connection.execute(query).fetchall())
    connection.close()
    return found


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
