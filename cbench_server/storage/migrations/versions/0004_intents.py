"""Intents: what is asked of a run's owner has a table, in place of a column that said `cancel`."""

import msgspec
import sqlalchemy as sa
from alembic import op

from cbench_server.storage.sums import UNKNOWN, row_sum

revision = "0004"
down_revision = "0003"

_HEAD = (
    *("id", "run_id", "request_id", "spec_digest", "state", "create_time", "end_time", "last_seq"),
    *("examples", "spool_complete", "cancel_requested", "deleted", "pinned", "systems", "labels"),
    "record_sum",
)
_ASKED = _HEAD.index("cancel_requested")
_FINAL = ("succeeded", "failed", "cancelled")


def upgrade() -> None:
    """Make the table, keep what was asked, and compute the checksums of runs without the column."""
    connection = op.get_bind()
    is_shared = connection.dialect.name == "postgresql"
    op.create_table(
        "intents",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("run_id", sa.Text(collation="C" if is_shared else None), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("arguments", sa.LargeBinary(), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("answer", sa.LargeBinary()),
        sa.Column("sum", sa.BigInteger(), nullable=False),
    )
    columns = ", ".join(_HEAD)
    found = connection.exec_driver_sql(f"SELECT {columns}, sum FROM runs ORDER BY id").fetchall()
    for *head, total in found:
        try:
            is_sound = row_sum(head) == total
            new = row_sum([*head[:_ASKED], *head[_ASKED + 1 :]]) if is_sound else UNKNOWN
        except (ValueError, TypeError, AttributeError):
            is_sound, new = False, UNKNOWN
        connection.execute(
            sa.text("UPDATE runs SET sum = :sum WHERE id = :id"), {"sum": new, "id": head[0]}
        )
        if is_sound and head[_ASKED] and head[4] not in _FINAL:
            _ask_to_cancel(connection, head[1])
    op.drop_column("runs", "cancel_requested")


def _ask_to_cancel(connection: sa.Connection, run_id: str) -> None:
    asked = (run_id, "cancel", msgspec.msgpack.encode({}), 0.0)
    columns = dict(zip(("run_id", "kind", "arguments", "time"), asked, strict=True))
    (number,) = connection.execute(
        sa.text(
            "INSERT INTO intents (run_id, kind, arguments, time, sum) "
            "VALUES (:run_id, :kind, :arguments, :time, :sum) RETURNING id"
        ),
        columns | {"sum": UNKNOWN},
    ).one()
    connection.execute(
        sa.text("UPDATE intents SET sum = :sum WHERE id = :id"),
        {"sum": row_sum((number, *asked, None)), "id": number},
    )
