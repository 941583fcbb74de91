"""Migration of a shared store to the schema of this version, which all who use it must have."""

from collections.abc import Iterator
from contextlib import contextmanager

from cbench_server.durable import failpoints
from cbench_server.errors import StoreError, StoreTooNew
from cbench_server.storage import postgresql_statements as sql
from cbench_server.storage.migrate import take_migrations
from cbench_server.storage.postgres.connection import PostgresConnection
from cbench_server.storage.postgres.database import OLDEST_SERVER, PostgresDatabase

# Any number, the same for all: who holds it makes or changes the tables.
_LOCK = 0x6362656E6368


def migrate(connection: PostgresConnection, database: PostgresDatabase) -> None:
    """Make the tables, or upgrade them; refuse a store of another revision with a sentence."""
    version = connection.raw.info.server_version
    if version < OLDEST_SERVER:
        raise StoreError(
            f"{database.name} is PostgreSQL {version // 10000}; stores need "
            f"{OLDEST_SERVER // 10000} or newer."
        )
    if _revision(connection, database) == sql.HEAD_REVISION:
        return
    with _alone(connection):
        revision = _revision(connection, database)
        if not revision:
            create(connection)
        elif revision < sql.HEAD_REVISION:
            upgrade(database, revision)
        else:
            check_revision(connection, database)


def check_revision(connection: PostgresConnection, database: PostgresDatabase) -> None:
    """Refuse a store that was upgraded by a newer version, if need be a moment ago."""
    revision = _revision(connection, database)
    if revision != sql.HEAD_REVISION:
        raise StoreTooNew(
            f"{database.name} was written by a newer cbench-server: its schema is {revision}, "
            f"this version knows {sql.HEAD_REVISION}. Upgrade cbench-server on this machine, "
            "or name another store."
        )


@contextmanager
def _alone(connection: PostgresConnection) -> Iterator[None]:
    """Keep others from making or changing the tables meanwhile."""
    connection.execute("SELECT pg_advisory_lock(%s::bigint)", (_LOCK,))
    try:
        yield
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s::bigint)", (_LOCK,))


def create(connection: PostgresConnection) -> None:
    """Make the newest tables in an empty database."""
    connection.begin_writing()
    try:
        for statement in sql.CREATE:
            connection.execute(statement)
        failpoints.hit("migrate.before")
        connection.commit()
        failpoints.hit("migrate.after")
    finally:
        connection.rollback()


def _revision(connection: PostgresConnection, database: PostgresDatabase) -> str:
    """Return the revision of the tables, empty where there are none."""
    (found,) = connection.execute("SELECT to_regclass('alembic_version')::text").fetchone()
    if found is None:
        (taken,) = connection.execute("SELECT to_regclass('events')::text").fetchone()
        if taken is not None:
            raise StoreError(
                f"{database.name} holds other tables of our names. Name an empty database, or a "
                "schema of its own: ?options=-csearch_path%3Dcbench"
            )
        return ""
    rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    if len(rows) != 1:
        raise StoreError(f"{database.name} does not say its schema version. Name another store.")
    return str(rows[0][0])


def upgrade(database: PostgresDatabase, revision: str) -> None:
    """Take every migration that the tables have not seen, all or none.

    Nobody may use them meanwhile: who does would go on to write to them as they were.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: database.open(autocommit=False),
        poolclass=NullPool,
    )
    with engine.connect() as session:
        if revision:
            session.exec_driver_sql("LOCK TABLE daemons, leases IN EXCLUSIVE MODE")
            others = [name for name, _ in session.exec_driver_sql(sql.LIVE_DAEMONS)]
            leases = session.exec_driver_sql(sql.LIVE_LEASES).scalar()
            if others or leases:
                raise StoreError(
                    f"{database.name} has schema {revision} and is in use by daemons of that "
                    f"version ({'; '.join(others) or f'{leases} leases of runs'}). Stop them, or "
                    "wait half a minute if they died; then start this one, which brings it to "
                    f"{sql.HEAD_REVISION}."
                )
        take_migrations(session, database.name)
        session.commit()
        failpoints.hit("migrate.after")
    engine.dispose()
