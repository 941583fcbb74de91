"""Every fixed statement, built from the tables and compiled once.

SQLAlchemy builds them, so that another database needs another dialect rather
than other statements; the driver executes them, since a row has microseconds.
"""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, literal_column, null, select, true, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.expression import ClauseElement, ColumnElement

from cbench_server.spec import RunState
from cbench_server.storage.schema import (
    IS_ROW,
    ROW_KEY,
    events,
    examples,
    run_labels,
    run_systems,
    runs,
)

DIALECT = sqlite.dialect(paramstyle="named")


def _sql(statement: ClauseElement) -> str:
    return str(statement.compile(dialect=DIALECT))


def _of_run(column: ColumnElement[int]) -> ColumnElement[bool]:
    return column == bindparam("run")


_this_run = runs.c.id == bindparam("run")
_visible = runs.c.deleted.is_(False)
_run_columns = [column for column in runs.c if column is not runs.c.id]

INSERT_RUN = _sql(insert(runs).values({c.name: bindparam(c.name) for c in _run_columns}))
INSERT_LABEL = _sql(insert(run_labels))
FIND_RUN = _sql(
    select(runs.c.id, runs.c.last_seq, runs.c.examples).where(
        runs.c.run_id == bindparam("run_id"), _visible
    )
)
FIND_REQUEST = _sql(
    select(runs.c.run_id, runs.c.spec_digest).where(
        runs.c.request_id == bindparam("request_id"), _visible
    )
)
RUN_COLUMNS = (
    runs.c.id,
    runs.c.run_id,
    runs.c.record_sum,
    runs.c.record,
    runs.c.last_seq,
    runs.c.examples,
    runs.c.spool_complete,
)
READ_RUN = _sql(select(*RUN_COLUMNS).where(runs.c.run_id == bindparam("run_id"), _visible))
READ_FLAGS = _sql(
    select(runs.c.examples, runs.c.spool_complete, runs.c.cancel_requested).where(
        runs.c.run_id == bindparam("run_id"), _visible
    )
)
SET_RECORD = _sql(
    update(runs)
    .where(_this_run)
    .values(
        record=bindparam("new_record"),
        record_sum=bindparam("new_sum"),
        state=bindparam("new_state"),
        end_time=bindparam("new_end_time"),
    )
)
SET_LAST_SEQ = _sql(update(runs).where(_this_run).values(last_seq=bindparam("new_last_seq")))
SET_SPOOLED = _sql(
    update(runs)
    .where(_this_run)
    .values(
        examples=bindparam("new_examples"),
        spool_complete=runs.c.spool_complete | bindparam("complete"),
    )
)
SET_CANCEL = _sql(update(runs).where(_this_run).values(cancel_requested=bindparam("requested")))

READ_SYSTEMS = _sql(
    select(
        run_systems.c.number,
        run_systems.c.name,
        run_systems.c.completed,
        run_systems.c.failed,
        run_systems.c.reused,
    )
    .where(_of_run(run_systems.c.run))
    .order_by(run_systems.c.number)
)
INSERT_SYSTEM = _sql(insert(run_systems))
SET_COUNTERS = _sql(
    update(run_systems)
    .where(_of_run(run_systems.c.run), run_systems.c.number == bindparam("system"))
    .values(
        completed=bindparam("new_completed"),
        failed=bindparam("new_failed"),
        reused=bindparam("new_reused"),
    )
)

_positional = sqlite.dialect(paramstyle="qmark")
_event = {column.name: None for column in events.c}
# The driver gives up the interpreter lock once a statement, and beside a busy
# event loop that takes longer than the insert: many rows go in one statement.
INSERT_EVENTS = {
    count: str(insert(events).values([_event] * count).compile(dialect=_positional))
    for count in (64, 8, 1)
}
INSERT_EVENT_IF_NEW = str(
    sqlite.insert(events)
    .values(_event)
    .on_conflict_do_nothing(index_elements=ROW_KEY, index_where=IS_ROW)
    .compile(dialect=_positional)
)
_head = [column for column in events.c if column is not events.c.body]
_after = (_of_run(events.c.run), events.c.seq > bindparam("after"))
READ_EVENTS = _sql(select(*events.c).where(*_after).order_by(events.c.seq))
READ_HEADS = _sql(select(*_head).where(*_after).order_by(events.c.seq))
READ_EVENTS_BUT_ROWS = _sql(
    select(*_head).where(*_after, events.c.system.is_(None)).order_by(events.c.seq)
)
READ_COMPLETED = _sql(
    select(events.c.ordinal, events.c.repeat).where(
        _of_run(events.c.run),
        events.c.system == bindparam("system"),
        events.c.ordinal >= bindparam("start"),
        events.c.ordinal < bindparam("stop"),
    )
)


# Written as two comparisons, the first of which SQLite can seek by.
_row_after = (events.c.ordinal >= bindparam("ordinal")) & (
    (events.c.ordinal > bindparam("ordinal")) | (events.c.repeat > bindparam("repeat"))
)


def _read_rows(*, failed_only: bool, processed: bool) -> str:
    """Select one system's rows after a key, in order."""
    statement = (
        select(*(events.c if processed else _head))
        .where(
            _of_run(events.c.run),
            events.c.system == bindparam("system"),
            _row_after,
        )
        .order_by(events.c.ordinal, events.c.repeat)
    )
    return _sql(statement.where(events.c.failed) if failed_only else statement)


READ_ROWS = {
    (failed_only, processed): _read_rows(failed_only=failed_only, processed=processed)
    for failed_only in (False, True)
    for processed in (False, True)
}

READ_ROW = _sql(
    select(*events.c).where(
        _of_run(events.c.run),
        events.c.system == bindparam("system"),
        events.c.ordinal == bindparam("ordinal"),
        events.c.repeat == bindparam("repeat"),
    )
)

INSERT_EXAMPLE = _sql(sqlite.insert(examples).on_conflict_do_nothing())
READ_EXAMPLES = _sql(
    select(*examples.c)
    .where(_of_run(examples.c.run), examples.c.ordinal >= bindparam("start"))
    .order_by(examples.c.ordinal)
)

READ_DIGESTS = _sql(
    select(examples.c.digest)
    .where(_of_run(examples.c.run), examples.c.ordinal < bindparam("most"))
    .order_by(examples.c.ordinal)
)

FIND_RUN_TO_DELETE = _sql(select(runs.c.id).where(runs.c.run_id == bindparam("run_id")))
MARK_DELETED = _sql(update(runs).where(_this_run).values(deleted=true(), request_id=null()))
EVENT_SIZES = _sql(
    select(
        events.c.seq,
        func.length(events.c.head) + func.coalesce(func.length(events.c.body), literal_column("0")),
    )
    .where(_of_run(events.c.run))
    .order_by(events.c.seq)
)
EXAMPLE_SIZES = _sql(
    select(examples.c.ordinal, func.length(examples.c.body))
    .where(_of_run(examples.c.run))
    .order_by(examples.c.ordinal)
)
DELETE_EVENTS = _sql(delete(events).where(_of_run(events.c.run), events.c.seq <= bindparam("last")))
DELETE_EXAMPLES = _sql(
    delete(examples).where(_of_run(examples.c.run), examples.c.ordinal <= bindparam("last"))
)
DELETE_REST = (
    _sql(delete(run_systems).where(_of_run(run_systems.c.run))),
    _sql(delete(run_labels).where(_of_run(run_labels.c.run))),
    _sql(delete(runs).where(_this_run)),
)


def list_runs(
    limit: int, before: str | None, states: Collection[RunState], labels: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """Select runs, newest first, and give the parameters with the statement."""
    statement = select(*RUN_COLUMNS).where(_visible).order_by(runs.c.run_id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(runs.c.run_id < before)
    if states:
        statement = statement.where(runs.c.state.in_([str(state) for state in states]))
    for key, value in labels.items():
        labelled = select(run_labels.c.run).where(
            run_labels.c.key == key, run_labels.c.value == value
        )
        statement = statement.where(runs.c.id.in_(labelled))
    return _with_parameters(statement)


def expired_runs(before: float) -> tuple[str, dict[str, Any]]:
    """Select finished runs that ended before a time, and those half deleted."""
    final = [str(state) for state in RunState if state.is_final]
    ended = func.coalesce(runs.c.end_time, runs.c.create_time)
    is_expired = runs.c.state.in_(final) & (ended < before)
    return _with_parameters(
        select(runs.c.run_id).where(runs.c.deleted | is_expired).order_by(runs.c.run_id)
    )


def _with_parameters(statement: ClauseElement) -> tuple[str, dict[str, Any]]:
    compiled = statement.compile(dialect=DIALECT, compile_kwargs={"render_postcompile": True})
    return str(compiled), dict(compiled.params)
