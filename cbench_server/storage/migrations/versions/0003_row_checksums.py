"""A checksum for every row of every table, and pinned runs.

Events and examples have had theirs, over all their columns, since the first revision, and
keep them: what is rewritten here is one row for each run, label and system. All of it is one
transaction, with one run in memory at a time.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from cbench_server.storage.migrations.first_postgresql import create_first_tables
from cbench_server.storage.sums import UNKNOWN, record_sum, row_sum

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the three tables anew; what was damaged before is not given a checksum that holds."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        create_first_tables()
        return
    for table in ("runs", "run_labels", "run_systems"):
        _set_aside(table)
    _create_tables()
    newest = _scalar(connection, "SELECT max(seq) FROM sqlite_sequence WHERE name = 'runs_before'")
    for run in _runs(connection):
        _insert(connection, "runs", run)
    for label in _rows(connection, "SELECT * FROM run_labels_before"):
        label["sum"] = row_sum((label["run"], label["key"], label["value"]))
        _insert(connection, "run_labels", label)
    for system in _rows(connection, "SELECT * FROM run_systems_before"):
        system["sum"] = row_sum(tuple(system.values()))
        _insert(connection, "run_systems", system)
    # Children before the table that they refer to.
    for table in ("run_labels", "run_systems", "runs"):
        op.drop_table(f"{table}_before")
    if newest is not None:
        op.execute("DELETE FROM sqlite_sequence WHERE name = 'runs'")
        op.execute(f"INSERT INTO sqlite_sequence (name, seq) VALUES ('runs', {int(newest)})")


def _set_aside(table: str) -> None:
    # As SQLite did it of old: what refers to the table goes on to refer to its name.
    op.execute("PRAGMA legacy_alter_table = ON")
    op.rename_table(table, f"{table}_before")
    op.execute("PRAGMA legacy_alter_table = OFF")


def _create_tables() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("run_id", sa.Text(), nullable=False, unique=True),
        sa.Column("request_id", sa.Text(), unique=True),
        sa.Column("spec_digest", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("create_time", sa.Float(), nullable=False),
        sa.Column("end_time", sa.Float()),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("examples", sa.BigInteger(), nullable=False),
        sa.Column("spool_complete", sa.Boolean(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("systems", sa.Integer(), nullable=False),
        sa.Column("labels", sa.Integer(), nullable=False),
        sa.Column("record_sum", sa.BigInteger(), nullable=False),
        sa.Column("sum", sa.BigInteger(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "run_labels",
        sa.Column("run", sa.Integer(), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("sum", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "run_systems",
        sa.Column("run", sa.Integer(), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("completed", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("reused", sa.BigInteger(), nullable=False),
        sa.Column("sum", sa.BigInteger(), nullable=False),
    )


def _runs(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    for run in _rows(connection, "SELECT * FROM runs_before ORDER BY id"):
        record, total = run.pop("record"), run.pop("record_sum")
        found = connection.exec_driver_sql(
            'SELECT "key", value FROM run_labels_before WHERE run = ?', (run["id"],)
        )
        labels: dict[str, str] = {str(key): str(value) for key, value in found.fetchall()}
        systems = _counters(connection, run["id"])
        run |= {"pinned": 0, "systems": len(systems), "labels": len(labels), "record_sum": total}
        try:
            is_sound = run["deleted"] or (
                record_sum(run["run_id"], record) == total
                and _agrees(run, msgspec.msgpack.decode(record), labels)
                and systems == _counted(connection, run["id"])
                and run["last_seq"] == _events(connection, run["id"])
            )
            run["sum"] = row_sum(tuple(run.values())) if is_sound else UNKNOWN
        except (ValueError, TypeError, AttributeError, KeyError):
            run["sum"] = UNKNOWN
        yield run | {"record": record}


def _agrees(run: dict[str, Any], record: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether the columns, which had no checksum, say what the record says, which had one."""
    return bool(
        run["state"] == record["state"]
        and run["create_time"] == record["create_time"]
        and run["end_time"] == record.get("end_time")
        and (run["request_id"] or "") == record.get("request_id", "")
        and labels == record["spec"].get("labels", {})
    )


def _counters(connection: sa.Connection, run: int) -> dict[int, tuple[int, int]]:
    found = connection.exec_driver_sql(
        "SELECT number, completed, failed FROM run_systems_before WHERE run = ?", (run,)
    )
    return {number: (completed, failed) for number, completed, failed in found.fetchall()}


def _counted(connection: sa.Connection, run: int) -> dict[int, tuple[int, int]]:
    """Count the rows of each system, from the indexes alone; systems without any count too."""
    counts = {number: [0, 0] for number in _counters(connection, run)}
    statements = (
        "SELECT system, count(*) FROM events WHERE run = ? AND system IS NOT NULL GROUP BY system",
        "SELECT system, count(*) FROM events WHERE failed AND run = ? AND system IS NOT NULL "
        "GROUP BY system",
    )
    for place, statement in enumerate(statements):
        for number, count in connection.exec_driver_sql(statement, (run,)).fetchall():
            counts.setdefault(number, [0, 0])[place] = count
    return {number: (completed, failed) for number, (completed, failed) in counts.items()}


def _events(connection: sa.Connection, run: int) -> int:
    """Return how many events there are; none is missing, so it is the last one's number."""
    statement = f"SELECT count(*) FROM events WHERE run = {run}"
    return int(_scalar(connection, statement))


def _rows(connection: sa.Connection, statement: str) -> Iterator[dict[str, Any]]:
    found = connection.exec_driver_sql(statement)
    names = list(found.keys())
    while some := found.fetchmany(1):
        yield dict(zip(names, some[0], strict=True))


def _scalar(connection: sa.Connection, statement: str) -> Any:
    return connection.exec_driver_sql(statement).scalar()


def _insert(connection: sa.Connection, table: str, row: dict[str, Any]) -> None:
    names = ", ".join(f'"{name}"' for name in row)
    marks = ", ".join("?" * len(row))
    connection.exec_driver_sql(
        f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values())
    )
