"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create runs, their labels, systems, events and examples."""
    if op.get_context().dialect.name == "postgresql":
        return  # It came with 0003.
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
        sa.Column("record_sum", sa.BigInteger(), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "run_labels",
        sa.Column("run", sa.Integer(), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("key", sa.Text(), primary_key=True),
        sa.Column("value", sa.Text(), nullable=False),
    )
    op.create_table(
        "run_systems",
        sa.Column("run", sa.Integer(), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("completed", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("reused", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("run", sa.Integer(), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("time", sa.Float(), nullable=False),
        sa.Column("system", sa.Integer()),
        sa.Column("ordinal", sa.BigInteger()),
        sa.Column("repeat", sa.Integer()),
        sa.Column("failed", sa.Boolean(), nullable=False),
        sa.Column("head_sum", sa.BigInteger(), nullable=False),
        sa.Column("body_sum", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary()),
    )
    row_key = ["run", "system", "ordinal", "repeat"]
    _partial_index("row_key", row_key, sa.column("system").is_not(None), unique=True)
    _partial_index("failed_rows", ["failed", *row_key], sa.column("failed", sa.Boolean()))
    _partial_index("events_but_rows", ["run", "seq"], sa.column("system").is_(None))
    op.create_table(
        "examples",
        sa.Column("run", sa.Integer(), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("ordinal", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("idx", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("tokens", sa.LargeBinary(), nullable=False),
        sa.Column("sum", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
    )


def _partial_index(
    name: str, columns: list[str], where: sa.ColumnElement[bool], *, unique: bool = False
) -> None:
    op.create_index(
        name, "events", columns, unique=unique, sqlite_where=where, postgresql_where=where
    )
