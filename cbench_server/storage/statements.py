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
    func,
    insert,
    literal_column,
    null,
    select,
    true,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.expression import ClauseElement, ColumnElement

from cbench_server.spec import RunState
from cbench_server.storage.schema import (
    HEAD_REVISION,
    IS_ROW,
    ROW_KEY,
    events,
    examples,
    metadata,
    run_labels,
    run_systems,
    runs,
    shared_examples,
)

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
}


def _of_run(column: ColumnElement[int]) -> ColumnElement[bool]:
    return column == bindparam("run")


_this_run = runs.c.id == bindparam("run")
_is_visible = runs.c.deleted.is_(False)
_is_named = runs.c.run_id == bindparam("run_id")
_run_columns = [column for column in runs.c if column is not runs.c.id]
_visible_runs = select(
    runs.c.id,
    runs.c.run_id,
    runs.c.record_sum,
    runs.c.record,
    runs.c.last_seq,
    runs.c.examples,
    runs.c.spool_complete,
).where(_is_visible)
_is_final = runs.c.state.in_([literal_column(f"'{state}'") for state in RunState if state.is_final])
_ended = func.coalesce(runs.c.end_time, runs.c.create_time)
# A deleted run whose examples others share stays, hidden, with its examples alone.
_has_sharers = exists().where(shared_examples.c.owner == runs.c.id)
_has_events = exists().where(events.c.run == runs.c.id)

OF_RUNS: Mapping[str, Source] = {
    "INSERT_RUN": insert(runs).values({c.name: bindparam(c.name) for c in _run_columns}),
    "INSERT_LABEL": insert(run_labels),
    "FIND_RUN": select(runs.c.id, runs.c.last_seq, runs.c.examples).where(_is_named, _is_visible),
    "FIND_REQUEST": select(runs.c.run_id, runs.c.spec_digest).where(
        runs.c.request_id == bindparam("request_id"), _is_visible
    ),
    # run_list.py adds conditions to it.
    "VISIBLE_RUNS": _visible_runs,
    "READ_RUN": _visible_runs.where(_is_named),
    "READ_FLAGS": select(runs.c.examples, runs.c.spool_complete, runs.c.cancel_requested).where(
        _is_named, _is_visible
    ),
    "EXPIRED_RUNS": select(runs.c.run_id)
    .where(
        (runs.c.deleted & (~_has_sharers | _has_events))
        | (_is_final & (_ended < bindparam("before")) & _is_visible)
    )
    .order_by(runs.c.run_id),
    "SET_RECORD": update(runs)
    .where(_this_run)
    .values(
        record=bindparam("new_record"),
        record_sum=bindparam("new_sum"),
        state=bindparam("new_state"),
        end_time=bindparam("new_end_time"),
    ),
    "SET_LAST_SEQ": update(runs).where(_this_run).values(last_seq=bindparam("new_last_seq")),
    "SET_SPOOLED": update(runs)
    .where(_this_run)
    .values(
        examples=bindparam("new_examples"),
        spool_complete=runs.c.spool_complete | bindparam("complete"),
    ),
    "SET_CANCEL": update(runs).where(_this_run).values(cancel_requested=bindparam("requested")),
    "READ_SYSTEMS": select(
        run_systems.c.number,
        run_systems.c.name,
        run_systems.c.completed,
        run_systems.c.failed,
        run_systems.c.reused,
    )
    .where(_of_run(run_systems.c.run))
    .order_by(run_systems.c.number),
    "INSERT_SYSTEM": insert(run_systems),
    "SET_COUNTERS": update(run_systems)
    .where(_of_run(run_systems.c.run), run_systems.c.number == bindparam("system"))
    .values(
        completed=bindparam("new_completed"),
        failed=bindparam("new_failed"),
        reused=bindparam("new_reused"),
    ),
}

_head = [column for column in events.c if column is not events.c.body]
_after = (_of_run(events.c.run), events.c.seq > bindparam("after"))
_of_system = (_of_run(events.c.run), events.c.system == bindparam("system"))
# Written as two comparisons, the first of which SQLite can seek by.
_row_after = (events.c.ordinal >= bindparam("ordinal")) & (
    (events.c.ordinal > bindparam("ordinal")) | (events.c.repeat > bindparam("repeat"))
)


def _read_rows(*, failed_only: bool, processed: bool) -> ClauseElement:
    """Select one system's rows after a key, in order."""
    statement = (
        select(*(events.c if processed else _head))
        .where(*_of_system, _row_after)
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

_body_size = func.coalesce(func.length(events.c.body), literal_column("0"))

OF_DELETION: Mapping[str, Source] = {
    "FIND_RUN_TO_DELETE": select(runs.c.id).where(_is_named),
    "MARK_DELETED": update(runs).where(_this_run).values(deleted=true(), request_id=null()),
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

# The table in which Alembic keeps the revision, as Alembic makes it.
_revisions = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

_indexes = [index for table in metadata.tables.values() for index in table.indexes]

OF_NEW_FILES: Mapping[str, Source] = {
    # What makes an empty file one of the newest revision.
    "CREATE": (
        CreateTable(_revisions),
        *map(CreateTable, metadata.tables.values()),
        *map(CreateIndex, sorted(_indexes, key=lambda each: str(each.name))),
        insert(_revisions).values(version_num=literal_column(f"'{HEAD_REVISION}'")).inline(),
    ),
}

NAMED = {**OF_RUNS, **OF_EVENTS, **OF_EXAMPLES, **OF_DELETION, **OF_NEW_FILES}
"""The statements with named parameters that every database can say."""


def named(database: Database) -> dict[str, str | dict[Any, str] | tuple[str, ...]]:
    """Compile the statements with named parameters."""
    compiled: dict[str, str | dict[Any, str] | tuple[str, ...]] = {}
    for name, source in NAMED.items():
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
