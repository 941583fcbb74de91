"""Brings a store file to the schema of this version, or says why it cannot."""

import sqlite3
from pathlib import Path

from cbench_server.errors import StoreCorrupt, StoreTooNew
from cbench_server.storage.database import damaged
from cbench_server.storage.locks import exclusive
from cbench_server.storage.schema import HEAD_REVISION


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrade the file if it is older; raise `StoreTooNew` if it is newer."""
    if _revision(connection, path) == HEAD_REVISION:
        return
    # Two processes may meet a new file at the same moment.
    with exclusive(path.with_name("migrate.lock")):
        revision = _revision(connection, path)
        if revision == HEAD_REVISION:
            return
        if revision > HEAD_REVISION:
            raise StoreTooNew(
                f"{path} was written by a newer cbench-server: its schema is {revision}, this "
                f"version knows {HEAD_REVISION}. Upgrade cbench-server, or set CBENCH_HOME to "
                "another directory."
            )
        _upgrade(connection)


def _revision(connection: sqlite3.Connection, path: Path) -> str:
    """Return the file's revision, empty for an empty file. Revisions are ordered as text."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not tables:
        return ""
    if "alembic_version" not in tables:
        raise damaged(path, "it holds other tables")
    rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    if len(rows) != 1 or not isinstance(rows[0][0], str):
        raise StoreCorrupt(f"{path} does not say its schema version. Move it aside.")
    return str(rows[0][0])


def _upgrade(connection: sqlite3.Connection) -> None:
    # Imported here because they cost half a second, and are needed once in a file's life.
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    with engine.connect() as session:
        config.attributes["connection"] = session
        # One transaction: a process killed here leaves the file as it was.
        connection.execute("BEGIN IMMEDIATE")
        try:
            command.upgrade(config, "head")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if connection.in_transaction:
            connection.execute("COMMIT")
