"""Every statement, built from the tables. Nothing imports this at run time.

SQLAlchemy builds the statements, so that another database needs another
dialect rather than other statements. It takes as long to import as all the
rest of a daemon, so `scripts/gen_statements.py` compiles them ahead, into one
module per database such as `sqlite_statements`; after a change here, run it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    bindparam,
    delete,
    exists,
    false,
    func,
    insert,
    literal_column,
    null,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateSequence, CreateTable
from sqlalchemy.sql.expression import ClauseElement, ColumnElement

from cbench_server.storage.schema import (
    HEAD_REVISION,
    IS_ROW,
    ROW_KEY,
    asked_metadata,
    events,
    examples,
    intents,
    metadata,
    run_labels,
    run_systems,
    runs,
    shared_examples,
    shared_metadata,
)
from cbench_server.storage.sharing_statements import OF_SHARING

Source = ClauseElement | Mapping[Any, ClauseElement] | tuple[ClauseElement, ...]
"""What one name of a generated module is made of."""


@dataclass(frozen=True)
class Database:
    """One database's way to write statements."""

    named: Dialect
    """For statements whose parameters have names."""
    positional: Dialect
    """For statements that insert many rows, whose parameters are counted."""
    insert: Callable[[Table], Any]
    """Its own INSERT, which knows ON CONFLICT."""


DATABASES: Mapping[str, Database] = {
    "sqlite": Database(
        sqlite.dialect(paramstyle="named"), sqlite.dialect(paramstyle="qmark"), sqlite.insert
    ),
    "postgresql": Database(
        PGDialect_psycopg(paramstyle="pyformat"),  # type: ignore[no-untyped-call]
        PGDialect_psycopg(paramstyle="format"),  # type: ignore[no-untyped-call]
        postgresql.insert,
    ),
}


def _of_run(column: ColumnElement[int]) -> ColumnElement[bool]:
    return column == bindparam("run")


_this_run = runs.c.id == bindparam("run")
_is_named = runs.c.run_id == bindparam("run_id")
_run_columns = [column for column in runs.c if column is not runs.c.id]
_run_head = [column for column in runs.c if column is not runs.c.record]
# Not among them are those that indexes hold, which are fixed but for a deletion.
CHANGING = (
    "state",
    "end_time",
    "last_seq",
    "examples",
    "spool_complete",
    "pinned",
    "systems",
    "record_sum",
    "sum",
)

OF_RUNS: Mapping[str, Source] = {
    "INSERT_RUN": insert(runs).values({c.name: bindparam(c.name) for c in _run_columns}),
    "INSERT_LABEL": insert(run_labels),
    # Whether a run is deleted is read, like all of its head, only where the checksum holds.
    "FIND_RUN": select(*_run_head).where(_is_named),
    # SQLite has one writer, and no such lock.
    "LOCK_RUN": select(*_run_head).where(_is_named).with_for_update(),
    "FIND_REQUEST": select(*_run_head).where(runs.c.request_id == bindparam("request_id")),
    "LIST_RUNS": select(*_run_head)
    .where(runs.c.run_id < bindparam("before"))
    .order_by(runs.c.run_id.desc()),
    "LIST_RUN_IDS": select(runs.c.run_id)
    .where(runs.c.run_id < bindparam("before"))
    .order_by(runs.c.run_id.desc()),
    "READ_RECORD": select(runs.c.record).where(_this_run),
    "RECORD_SIZE": select(func.length(runs.c.record)).where(_this_run),
    "READ_LABELS": select(*run_labels.c)
    .where(_of_run(run_labels.c.run))
    .order_by(run_labels.c.key),
    "SET_RECORD": update(runs).where(_this_run).values(record=bindparam("new_record")),
    "SET_HEAD": update(runs)
    .where(_this_run)
    .values({name: bindparam(f"new_{name}") for name in CHANGING}),
    "SHOW_RUN": update(runs)
    .where(_this_run)
    .values(deleted=false(), request_id=bindparam("new_request_id")),
    "READ_SYSTEMS": select(*run_systems.c)
    .where(_of_run(run_systems.c.run))
    .order_by(run_systems.c.number),
    "INSERT_SYSTEM": insert(run_systems),
    "SET_COUNTERS": update(run_systems)
    .where(_of_run(run_systems.c.run), run_systems.c.number == bindparam("system"))
    .values(
        completed=bindparam("new_completed"),
        failed=bindparam("new_failed"),
        reused=bindparam("new_reused"),
        sum=bindparam("new_sum"),
    ),
}

_head = [column for column in events.c if column is not events.c.body]
# What lies beyond a run's last event has strayed there from another run.
_is_own = events.c.seq <= bindparam("last_seq")
_after = (_of_run(events.c.run), events.c.seq > bindparam("after"), _is_own)
_of_system = (_of_run(events.c.run), events.c.system == bindparam("system"))
# Written as two comparisons, the first of which SQLite can seek by.
_row_after = (events.c.ordinal >= bindparam("ordinal")) & (
    (events.c.ordinal > bindparam("ordinal")) | (events.c.repeat > bindparam("repeat"))
)


def _read_rows(*, failed_only: bool, processed: bool) -> ClauseElement:
    """Select one system's rows after a key, in order."""
    statement = (
        select(*(events.c if processed else _head))
        .where(*_of_system, _row_after, _is_own)
        .order_by(events.c.ordinal, events.c.repeat)
    )
    return statement.where(events.c.failed) if failed_only else statement


OF_EVENTS: Mapping[str, Source] = {
    "READ_EVENTS": select(*events.c).where(*_after).order_by(events.c.seq),
    "READ_HEADS": select(*_head).where(*_after).order_by(events.c.seq),
    "READ_EVENTS_BUT_ROWS": select(*_head)
    .where(*_after, events.c.system.is_(None))
    .order_by(events.c.seq),
    "READ_COMPLETED": select(events.c.ordinal, events.c.repeat).where(
        *_of_system,
        events.c.ordinal >= bindparam("start"),
        events.c.ordinal < bindparam("stop"),
    ),
    "READ_ROWS": {
        (failed_only, processed): _read_rows(failed_only=failed_only, processed=processed)
        for failed_only in (False, True)
        for processed in (False, True)
    },
    "READ_ROW": select(*events.c).where(
        *_of_system,
        events.c.ordinal == bindparam("ordinal"),
        events.c.repeat == bindparam("repeat"),
    ),
}

OF_EXAMPLES: Mapping[str, Source] = {
    "READ_EXAMPLES": select(*examples.c)
    .where(_of_run(examples.c.run), examples.c.ordinal >= bindparam("start"))
    .order_by(examples.c.ordinal),
    "READ_DIGESTS": select(examples.c.digest)
    .where(_of_run(examples.c.run), examples.c.ordinal < bindparam("most"))
    .order_by(examples.c.ordinal),
    "INSERT_SHARED": insert(shared_examples),
    "FIND_OWNER": select(shared_examples.c.owner, shared_examples.c.sum).where(
        _of_run(shared_examples.c.run)
    ),
}


def _window(table: Table, position: ColumnElement[int]) -> dict[Any, ClauseElement]:
    """Select rows by their place in a run."""
    placed = select(*table.c).where(
        _of_run(table.c.run), position >= bindparam("start"), position < bindparam("stop")
    )
    return {(table.name, "window"): placed.order_by(position)}


_windows = _window(events, events.c.seq) | _window(examples, examples.c.ordinal)


def _unplaced_rows(table: Table) -> dict[Any, ClauseElement]:
    """Select rows without an index, by where they lie in the table."""
    rowid: ColumnElement[int] = literal_column(f"{table.name}.rowid")
    is_here = (rowid >= bindparam("start"), rowid < bindparam("stop"))
    by_rowid = select(rowid, *table.c)
    return {
        (table.name, "block"): by_rowid.where(*is_here),
        (table.name, "by_rowid"): by_rowid.where(rowid == bindparam("rowid")),
        (table.name, "last_rowid"): select(func.max(rowid)).select_from(table),
        (table.name, "next_rowid"): select(func.min(rowid)).select_from(table).where(is_here[0]),
    }


# For what is left of damaged runs.
OF_SALVAGE: Mapping[str, Source] = {
    "PLACES": {
        "events": select(events.c.seq).where(_of_run(events.c.run)).order_by(events.c.seq.desc()),
        "examples": select(examples.c.ordinal)
        .where(_of_run(examples.c.run))
        .order_by(examples.c.ordinal.desc()),
    },
    # From the table, and from the index by name.
    "RUN_NUMBERS": (
        select(runs.c.id).order_by(runs.c.id),
        select(runs.c.id).order_by(runs.c.run_id),
    ),
    "USED_NUMBERS": (select(events.c.run).distinct(), select(examples.c.run).distinct()),
    # From the index alone.
    "RUN_KEY": select(runs.c.id).where(_is_named),
    "HEAD_BY_ID": select(*_run_head).where(_this_run),
    "RENUMBER_RUN": update(runs)
    .where(_this_run)
    .values(id=bindparam("new_id"), run_id=bindparam("new_run_id")),
}

_body_size = func.coalesce(func.length(events.c.body), literal_column("0"))

OF_DELETION: Mapping[str, Source] = {
    "HIDE_RUN": update(runs)
    .where(_this_run)
    .values(deleted=true(), request_id=null(), sum=bindparam("new_sum")),
    "RUN_SIZES": (
        select(func.length(runs.c.record)).where(_this_run),
        select(func.sum(func.length(events.c.head) + _body_size)).where(_of_run(events.c.run)),
        select(func.sum(func.length(examples.c.body))).where(_of_run(examples.c.run)),
    ),
    "EVENT_SIZES": select(events.c.seq, func.length(events.c.head) + _body_size)
    .where(_of_run(events.c.run))
    .order_by(events.c.seq),
    "EXAMPLE_SIZES": select(examples.c.ordinal, func.length(examples.c.body))
    .where(_of_run(examples.c.run))
    .order_by(examples.c.ordinal),
    "DELETE_EVENTS": delete(events).where(_of_run(events.c.run), events.c.seq <= bindparam("last")),
    "DELETE_EXAMPLES": delete(examples).where(
        _of_run(examples.c.run), examples.c.ordinal <= bindparam("last")
    ),
    "IS_SHARED": select(exists().where(shared_examples.c.owner == bindparam("run"))),
    "HAS_EVENTS": select(exists().where(events.c.run == bindparam("run"))),
    "IS_DELETED": select(runs.c.deleted).where(_this_run),
    "DELETE_PARTS": (
        delete(run_systems).where(_of_run(run_systems.c.run)),
        delete(run_labels).where(_of_run(run_labels.c.run)),
    ),
    "DELETE_RUN": (
        delete(shared_examples).where(_of_run(shared_examples.c.run)),
        delete(runs).where(_this_run),
    ),
}

_this_intent = intents.c.id == bindparam("intent")

OF_INTENTS: Mapping[str, Source] = {
    "INSERT_INTENT": insert(intents)
    .values({name: bindparam(name) for name in ("run_id", "kind", "arguments", "time", "sum")})
    .returning(intents.c.id),
    "OPEN_INTENTS": select(intents).where(intents.c.answer.is_(None)).order_by(intents.c.id),
    "READ_INTENT": select(intents).where(_this_intent),
    "SET_ANSWER": update(intents)
    .where(_this_intent)
    .values(answer=bindparam("new_answer"), sum=bindparam("new_sum")),
    "DELETE_INTENT": delete(intents).where(_this_intent),
    "FORGET_INTENTS": delete(intents).where(intents.c.time < bindparam("before")),
}

# The table in which Alembic keeps the revision, as Alembic makes it.
_revisions = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def _create(*kinds: MetaData) -> tuple[ClauseElement, ...]:
    """Return what makes an empty store one of the newest revision."""
    tables = [table for each in kinds for table in each.tables.values()]
    indexes = [index for table in tables for index in table.indexes]
    return (
        CreateTable(_revisions),
        *(CreateSequence(sequence) for each in kinds for sequence in each._sequences.values()),
        *map(CreateTable, tables),
        *map(CreateIndex, sorted(indexes, key=lambda each: str(each.name))),
        insert(_revisions).values(version_num=literal_column(f"'{HEAD_REVISION}'")).inline(),
    )


NAMED = {**OF_RUNS, **OF_EVENTS, **OF_EXAMPLES, **OF_SALVAGE, **OF_DELETION, **OF_INTENTS}
"""The statements with named parameters that every database can say."""

_live_bytes = tuple(
    select(func.coalesce(func.sum(size), literal_column("0")))
    for size in (
        func.length(runs.c.record),
        func.length(events.c.head) + _body_size,
        func.length(examples.c.body),
    )
)

OF_DATABASES: Mapping[str, Mapping[str, Source]] = {
    "sqlite": {
        "CREATE": _create(metadata, asked_metadata),
        # Until the end of the transaction, rows may have the number of a run that is not there.
        "DEFER_REFERENCES": (text("PRAGMA defer_foreign_keys = ON"),),
        # Rows are looked for without an index too: other databases mend their own files.
        "PLACED_ROWS": _windows | _unplaced_rows(events) | _unplaced_rows(examples),
    },
    "postgresql": {
        "CREATE": _create(metadata, asked_metadata, shared_metadata),
        "DEFER_REFERENCES": (),
        "PLACED_ROWS": _windows,
        "LIVE_BYTES": _live_bytes,
        "INSERT_RUN": OF_RUNS["INSERT_RUN"].returning(runs.c.id),  # type: ignore[union-attr]
        **OF_SHARING,
    },
}
"""Those that one of them alone can, or needs in a form of its own."""


def named(database: Database) -> dict[str, str | dict[Any, str] | tuple[str, ...]]:
    """Compile the statements with named parameters."""
    compiled: dict[str, str | dict[Any, str] | tuple[str, ...]] = {}
    sources = {**NAMED, **OF_DATABASES[database.named.name]}
    for name, source in sources.items():
        if isinstance(source, Mapping):
            compiled[name] = {key: _text(each, database.named) for key, each in source.items()}
        elif isinstance(source, tuple):
            compiled[name] = tuple(_text(each, database.named) for each in source)
        else:
            compiled[name] = _text(source, database.named)
    return compiled


def positional(database: Database) -> dict[str, str]:
    """Compile the statements whose parameters are counted."""
    inserted = database.insert(events).values(dict.fromkeys(events.c.keys()))
    new_row = inserted.on_conflict_do_nothing(index_elements=ROW_KEY, index_where=IS_ROW)
    return {"INSERT_EVENT_IF_NEW": _text(new_row, database.positional)}


def copied(database: Database) -> dict[str, str]:
    """Write what PostgreSQL has for many rows at once, and for one of them."""
    if database.named.name != "postgresql":
        return {}
    one = {name.removesuffix("S"): text for name, text in batched(database).items()}
    sizes = ", ".join(f"pg_total_relation_size('{table}')" for table in metadata.tables)
    return one | {
        "COPY_EVENTS": f"COPY events ({', '.join(events.c.keys())}) FROM STDIN (FORMAT BINARY)",
        "TABLE_BYTES": f"SELECT {sizes.replace(', ', ' + ')}",
    }


def batched(database: Database) -> dict[str, str]:
    """Compile the statements that insert many rows, here with one."""
    new_events = database.insert(events).values(dict.fromkeys(events.c.keys()))
    new_examples = database.insert(examples).values(dict.fromkeys(examples.c.keys()))
    return {
        "INSERT_EVENTS": _text(new_events, database.positional),
        "INSERT_EXAMPLES": _text(new_examples.on_conflict_do_nothing(), database.positional),
    }


def _text(statement: ClauseElement, dialect: Dialect) -> str:
    """Compile one statement; white space in it means nothing."""
    return " ".join(str(statement.compile(dialect=dialect)).split())
