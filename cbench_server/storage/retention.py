"""Retention: which finished runs are too old, too many or too large together."""

import re
from collections.abc import Iterator

from cbench_server.runs.store import PrunedRun, RetentionRule
from cbench_server.spec import RunState
from cbench_server.storage import sums
from cbench_server.storage.connection import Connection
from cbench_server.storage.damage import is_sum
from cbench_server.storage.run_rows import RunHead, heads, snapshot

_DIGEST = re.compile(rb"[0-9a-f]{64}")
_FINAL = frozenset(str(state) for state in RunState if state.is_final)


def expired(connection: Connection, rule: RetentionRule, now: float) -> list[PrunedRun]:
    """Return the runs that a rule lets go, oldest first.

    Runs that are not over, are pinned, or whose record is damaged are never among them. A run
    counts from its end. What counts in bytes is the whole file without its free pages.
    """
    with snapshot(connection):
        finished = sorted(_finished(connection), key=lambda head: (_end(head), head.run_id))
        chosen: dict[str, PrunedRun] = {}

        def choose(head: RunHead, why: str) -> None:
            if head.run_id not in chosen and _record(connection, head) is not None:
                size = size_of(connection, head.id)
                chosen[head.run_id] = PrunedRun(head.run_id, _end(head), size, why)

        if rule.older_than is not None:
            for head in finished:
                if _end(head) < now - rule.older_than:
                    choose(head, "age")
        if rule.keep is not None:
            for head in finished[: max(0, len(finished) - rule.keep)]:
                choose(head, "count")
        if rule.max_bytes is not None:
            used = connection.used_bytes() - sum(each.size for each in chosen.values())
            for head in finished:
                if used <= rule.max_bytes:
                    break
                if head.run_id not in chosen:
                    choose(head, "bytes")
                    used -= chosen[head.run_id].size if head.run_id in chosen else 0
    return sorted(chosen.values(), key=lambda each: (each.end_time, each.run_id))


def half_deleted(connection: Connection) -> list[str]:
    """Return the ids of runs whose deletion was begun and not finished.

    One whose examples others share stays, hidden, with its examples alone.
    """
    with snapshot(connection):
        return [
            head.run_id
            for head in heads(connection)
            if isinstance(head, RunHead)
            and head.deleted
            and (
                not _tells(connection, connection.sql.IS_SHARED, head)
                or _tells(connection, connection.sql.HAS_EVENTS, head)
            )
        ]


def _tells(connection: Connection, statement: str, head: RunHead) -> bool:
    return bool(connection.execute(statement, {"run": head.id}).fetchone()[0])


def _finished(connection: Connection) -> Iterator[RunHead]:
    for head in heads(connection):
        if not isinstance(head, RunHead) or head.deleted or head.pinned:
            continue
        if head.state in _FINAL:
            yield head


def _record(connection: Connection, head: RunHead) -> bytes | None:
    """Return the record of a run; None if it is damaged."""
    (record,) = connection.execute(connection.sql.READ_RECORD, {"run": head.id}).fetchone()
    is_sound = is_sum(head.record_sum, lambda: sums.record_sum(head.run_id, record))
    return record if is_sound else None


def _end(head: RunHead) -> float:
    return head.create_time if head.end_time is None else head.end_time


def size_of(connection: Connection, run: int) -> int:
    """Return the bytes of a run's record, events and examples."""
    sizes = [
        connection.execute(each, {"run": run}).fetchone()[0] for each in connection.sql.RUN_SIZES
    ]
    return sum(size or 0 for size in sizes)


def uploads_in_use(connection: Connection) -> set[str] | None:
    """Return the digests that runs name, uploads among them; None if a run cannot be read."""
    used: set[str] = set()
    with snapshot(connection):
        for head in heads(connection):
            record = _record(connection, head) if isinstance(head, RunHead) else None
            if record is None:
                return None
            used |= {digest.decode() for digest in _DIGEST.findall(record)}
    return used
