"""Migration of a store file to the schema of this version.

An empty file gets the newest tables at once; only an older file needs Alembic,
which takes half a second to import.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.durable import failpoints
from cbench_server.errors import StoreCorrupt, StoreTooNew
from cbench_server.storage.database import SQLITE_ERRORS, damaged, explained
from cbench_server.storage.leftovers import held
from cbench_server.storage.sqlite_statements import CREATE, HEAD_REVISION

if TYPE_CHECKING:
    from sqlalchemy import Connection as SqlSession

_PARTS = """
    SELECT 'index ' || name, '' FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL
    UNION SELECT 'table ' || tables.name, columns.name
    FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
    WHERE tables.type = 'table'
"""


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrade the file if it is older; raise `StoreTooNew` if it is newer."""
    if revision_of(connection, path) == HEAD_REVISION:
        return
    # Two processes may meet a new file at the same moment.
    lock = path.with_name("migrate.lock")
    with explained(lock), held(lock), explained(path):
        revision = revision_of(connection, path)
        if revision == HEAD_REVISION:
            return
        if revision > HEAD_REVISION:
            raise _too_new(path, revision)
        if not revision:
            create(connection)
            return
        try:
            upgrade(connection, str(path))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise
            what = f"its schema is not the {revision} it is said to be: {error}"
            raise damaged(path, what) from error


def parts(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the tables, each with its columns, and the indexes."""
    return connection.execute(_PARTS).fetchall()


def expected_parts() -> list[tuple[str, str]]:
    """Return those of a new file."""
    with closing(sqlite3.connect(":memory:")) as new:
        for statement in CREATE:
            new.execute(statement)
        return parts(new)


def check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the tables may be those of this version, whatever the file says of itself."""
    try:
        revision = revision_of(connection, path)
        has_others = set(parts(connection)) != set(expected_parts())
    except (StoreCorrupt, *SQLITE_ERRORS):
        return  # Damage does not tell.
    if revision > HEAD_REVISION and has_others:
        raise _too_new(path, revision)
    if revision < HEAD_REVISION and has_others:
        raise StoreCorrupt(
            f"{path} has the schema {revision}, and its runs are read only once it has "
            f"{HEAD_REVISION}, to which it could not be brought. cbench doctor --deep says why."
        )


def _too_new(path: Path, revision: str) -> StoreTooNew:
    return StoreTooNew(
        f"{path} was written by a newer cbench-server: its schema is {revision}, this version "
        f"knows {HEAD_REVISION}. Upgrade cbench-server, or set CBENCH_HOME to another directory."
    )


def revision_of(connection: sqlite3.Connection, path: Path) -> str:
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


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all or nothing: a process killed inside leaves the file as it was."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if connection.in_transaction:
        failpoints.hit("migrate.before")
        connection.execute("COMMIT")
    failpoints.hit("migrate.after")


def create(connection: sqlite3.Connection) -> None:
    """Make the newest tables in an empty file."""
    with _transaction(connection):
        for statement in CREATE:
            connection.execute(statement)


def take_migrations(session: "SqlSession", name: str) -> None:
    """Have Alembic take the migrations that a database, called so, has not seen."""
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = session
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise StoreCorrupt(
            f"{name} says that it has a schema which no cbench has made ({error}): that is "
            "damaged. Restore a copy of it, or move it aside to start with an empty one."
        ) from error


def upgrade(connection: sqlite3.Connection, name: str = "the store") -> None:
    """Take every migration that the file, called so, has not seen."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import StaticPool

    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    # A table that is made anew is gone for a moment; within a transaction the pragma does nothing.
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        # The session outside: one that is closed takes back what is not committed.
        with engine.connect() as session, _transaction(connection):
            take_migrations(session, name)
    except DBAPIError as error:
        raise error.orig or error from error
    connection.execute("PRAGMA foreign_keys = ON")
