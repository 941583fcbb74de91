"""The tables of PostgreSQL as they were when it came, with revision 0003."""

import sqlalchemy as sa
from alembic import op


def _id(name: str, *parts: sa.schema.SchemaItem, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(collation="C"), *parts, nullable=nullable)


def _of_run(name: str = "run", *, key: bool = True) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), sa.ForeignKey("runs.id"), primary_key=key, nullable=False)


def _number(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), primary_key=key, autoincrement=False, nullable=nullable)


def _count(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), primary_key=key, autoincrement=False, nullable=nullable)


def _text(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), primary_key=key, nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Float(), nullable=nullable)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _bytes(name: str, *, nullable: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary(), nullable=nullable)


def create_first_tables() -> None:
    """Create all of them in an empty database."""
    _create_runs()
    _create_events()
    _create_shared()


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), primary_key=True),
        _id("run_id"),
        _text("request_id", nullable=True),
        *(_text("spec_digest"), _text("state")),
        *(_time("create_time"), _time("end_time", nullable=True)),
        *(_count("last_seq"), _count("examples")),
        *map(_flag, ("spool_complete", "cancel_requested", "deleted", "pinned")),
        *(_number("systems"), _number("labels")),
        *(_count("record_sum"), _count("sum")),
        _bytes("record"),
        sa.UniqueConstraint("run_id"),
        sa.UniqueConstraint("request_id"),
    )
    op.create_table("run_labels", _of_run(), _text("key", key=True), _text("value"), _count("sum"))
    op.create_table(
        "run_systems",
        _of_run(),
        _number("number", key=True),
        _text("name"),
        *map(_count, ("completed", "failed", "reused", "sum")),
    )


def _create_events() -> None:
    op.create_table(
        "events",
        _of_run(),
        _count("seq", key=True),
        _number("kind"),
        _time("time"),
        _number("system", nullable=True),
        _count("ordinal", nullable=True),
        _number("repeat", nullable=True),
        _flag("failed"),
        *(_count("head_sum"), _count("body_sum")),
        *(_bytes("head"), _bytes("body", nullable=True)),
    )
    row_key = ["run", "system", "ordinal", "repeat"]
    is_row = sa.column("system").is_not(None)
    op.create_index("row_key", "events", row_key, unique=True, postgresql_where=is_row)
    failed = sa.column("failed", sa.Boolean())
    op.create_index("failed_rows", "events", ["failed", *row_key], postgresql_where=failed)
    op.create_index("events_but_rows", "events", ["run", "seq"], postgresql_where=~is_row)
    op.create_table(
        "examples",
        _of_run(),
        _count("ordinal", key=True),
        *(_text("dataset"), _count("idx"), _text("digest")),
        *(_bytes("tokens"), _count("sum"), _bytes("body")),
    )
    op.create_table("shared_examples", _of_run(), _of_run("owner", key=False), _count("sum"))
    op.create_index("examples_owner", "shared_examples", ["owner"])


def _create_shared() -> None:
    key = sa.PrimaryKeyConstraint
    op.create_table(
        "daemons", _id("id"), _text("name"), _text("revision"), _time("expires"), key("id")
    )
    op.execute("CREATE SEQUENCE lease_epochs")
    op.create_table(
        "leases", _id("run_id"), _count("epoch"), _id("daemon"), _time("expires"), key("run_id")
    )
    op.create_index("leases_of_daemon", "leases", ["daemon"])
    op.create_table("uploads", _id("digest"), _count("size"), _time("used"), key("digest"))
    op.create_table(
        "upload_parts",
        _id("digest", sa.ForeignKey("uploads.digest", ondelete="CASCADE")),
        _number("number"),
        _bytes("body"),
        key("digest", "number"),
    )
