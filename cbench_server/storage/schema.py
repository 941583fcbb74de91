"""The tables, as SQLAlchemy knows them: the one source of statements and of new stores.

`statements.py` is built from it, and migrations/ brings an older file to this shape.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    Table,
    Text,
)

HEAD_REVISION = "0004"
"""The newest migration, which this version reads and writes."""

metadata = MetaData()

asked_metadata = MetaData()
"""What is asked of owners, and gone once it is answered."""

shared_metadata = MetaData()
"""What PostgreSQL alone has, since there several daemons share a store and nothing else."""

# Ids are ordered by their bytes, as SQLite does, whatever the language of a database is.
_Id = Text().with_variant(Text(collation="C"), "postgresql")

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", _Id, nullable=False, unique=True),
    Column("request_id", Text, unique=True),
    Column("spec_digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("create_time", Float, nullable=False),
    Column("end_time", Float),
    Column("last_seq", BigInteger, nullable=False),
    Column("examples", BigInteger, nullable=False),
    Column("spool_complete", Boolean, nullable=False),
    # Set while a run is being deleted in batches; it is hidden from then on.
    Column("deleted", Boolean, nullable=False),
    # Retention passes over a pinned run.
    Column("pinned", Boolean, nullable=False),
    # How many rows of the other tables are its own, so that a lost one is missed.
    Column("systems", Integer, nullable=False),
    Column("labels", Integer, nullable=False),
    Column("record_sum", BigInteger, nullable=False),
    Column("sum", BigInteger, nullable=False),
    # Last, so that all the others are read without touching its pages.
    Column("record", LargeBinary, nullable=False),
    # An id that is never used again cannot lead a stale page token to another run.
    sqlite_autoincrement=True,
)

run_labels = Table(
    "run_labels",
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("sum", BigInteger, nullable=False),
)

run_systems = Table(
    "run_systems",
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("completed", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("reused", BigInteger, nullable=False),
    Column("sum", BigInteger, nullable=False),
)

# The body stands last: SQLite then reads a head without touching the body's pages.
events = Table(
    "events",
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Integer, nullable=False),
    Column("time", Float, nullable=False),
    Column("system", Integer),
    Column("ordinal", BigInteger),
    Column("repeat", Integer),
    Column("failed", Boolean, nullable=False),
    Column("head_sum", BigInteger, nullable=False),
    Column("body_sum", BigInteger, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("body", LargeBinary),
)

ROW_KEY = (events.c.run, events.c.system, events.c.ordinal, events.c.repeat)
IS_ROW = events.c.system.is_not(None)

Index("row_key", *ROW_KEY, unique=True, sqlite_where=IS_ROW, postgresql_where=IS_ROW)
# `failed` is the same in all of it, and is there so that SQLite prefers this index.
Index(
    "failed_rows",
    events.c.failed,
    *ROW_KEY,
    sqlite_where=events.c.failed,
    postgresql_where=events.c.failed,
)
Index(
    "events_but_rows",
    events.c.run,
    events.c.seq,
    sqlite_where=events.c.system.is_(None),
    postgresql_where=events.c.system.is_(None),
)

examples = Table(
    "examples",
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("ordinal", BigInteger, primary_key=True, autoincrement=False),
    Column("dataset", Text, nullable=False),
    Column("idx", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("tokens", LargeBinary, nullable=False),
    Column("sum", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# A rescored run has the examples of another, whose own they are.
shared_examples = Table(
    "shared_examples",
    metadata,
    Column("run", ForeignKey("runs.id"), primary_key=True),
    Column("owner", ForeignKey("runs.id"), nullable=False),
    Column("sum", BigInteger, nullable=False),
)

Index("examples_owner", shared_examples.c.owner)

intents = Table(
    "intents",
    asked_metadata,
    Column("id", Integer, primary_key=True),
    Column("run_id", _Id, nullable=False),
    Column("kind", Text, nullable=False),
    Column("arguments", LargeBinary, nullable=False),
    Column("time", Float, nullable=False),
    Column("answer", LargeBinary),
    Column("sum", BigInteger, nullable=False),
)

# Who uses the store now, and the last commit of each connection that writes. Times here are
# seconds of the database's clock.
daemons = Table(
    "daemons",
    shared_metadata,
    Column("id", _Id, primary_key=True),
    Column("name", Text, nullable=False),
    Column("revision", Text, nullable=False),
    Column("expires", Float, nullable=False),
)

lease_epochs = Sequence("lease_epochs", metadata=shared_metadata)

# Who owns which run. A run that nobody has worked on, or that was let go, has none.
leases = Table(
    "leases",
    shared_metadata,
    Column("run_id", _Id, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("daemon", _Id, nullable=False),
    Column("expires", Float, nullable=False),
)

Index("leases_of_daemon", leases.c.daemon)

# Examples that clients sent, as the file that a store of one machine keeps, in pieces.
uploads = Table(
    "uploads",
    shared_metadata,
    Column("digest", _Id, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("used", Float, nullable=False),
)

upload_parts = Table(
    "upload_parts",
    shared_metadata,
    Column("digest", ForeignKey("uploads.digest", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)
