"""Statements of stores that several daemons share, which PostgreSQL alone has.

They are a part of statements.py, and like it imported by the generator only.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    Float,
    Integer,
    Text,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.sql.expression import ClauseElement

from cbench_server.spec import RunState
from cbench_server.storage.schema import (
    daemons,
    lease_epochs,
    leases,
    runs,
    upload_parts,
    uploads,
)

_now = literal_column("date_part('epoch', clock_timestamp())", Float)
_seconds = bindparam("seconds", type_=Float)
_lapses = _now + _seconds
_one = literal_column("1", Integer)
_mine = bindparam("daemon", type_=leases.c.daemon.type)
# By the daemon too: a standby that took over may give an epoch again that it has not heard of.
_this_lease = (
    leases.c.run_id == bindparam("run_id"),
    leases.c.epoch == bindparam("epoch"),
    leases.c.daemon == _mine,
)
_this_upload = uploads.c.digest == bindparam("digest")

_enter = insert(daemons).values(
    id=_mine, name=bindparam("name"), revision=bindparam("revision"), expires=_lapses
)
_claim = insert(leases).values(
    run_id=bindparam("run_id"), epoch=lease_epochs.next_value(), daemon=_mine, expires=_lapses
)

# A connection that writes has an entry without a name, which tells its last commit.
_no_name = literal_column("''", Text)
_writer = bindparam("writer", type_=daemons.c.id.type)
_number = bindparam("number", type_=daemons.c.revision.type)
_mark = insert(daemons).values(
    id=_writer, name=_no_name, revision=_number, expires=_now + literal_column("3600", Float)
)

OF_COMMITS: Mapping[str, ClauseElement] = {
    "MARK_COMMIT": _mark.on_conflict_do_update(
        index_elements=[daemons.c.id],
        set_={"revision": _mark.excluded.revision, "expires": _mark.excluded.expires},
    ),
    "FIND_MARK": select(_one).where(daemons.c.id == _writer, daemons.c.revision == _number),
}

OF_LEASES: Mapping[str, ClauseElement] = {
    "ENTER_DAEMON": _enter.on_conflict_do_update(
        index_elements=[daemons.c.id], set_={"expires": _lapses}
    ),
    "LEAVE_DAEMON": delete(daemons).where(daemons.c.id == _mine),
    "LIVE_DAEMONS": select(daemons.c.name, daemons.c.revision).where(
        daemons.c.expires > _now, daemons.c.name != _no_name
    ),
    "FORGET_DAEMONS": delete(daemons).where(daemons.c.expires <= _now),
    # A daemon that could not give a lease back may have it again at once.
    "CLAIM_RUN": _claim.on_conflict_do_update(
        index_elements=[leases.c.run_id],
        set_={"epoch": lease_epochs.next_value(), "daemon": _mine, "expires": _lapses},
        where=or_(leases.c.expires <= _now, leases.c.daemon == _mine),
    ).returning(leases.c.epoch),
    # Held until the commit, so that nobody takes the run over in between.
    "HOLD_CLAIM": select(runs.c.last_seq, runs.c.examples)
    .select_from(leases.outerjoin(runs, runs.c.run_id == leases.c.run_id))
    .where(*_this_lease)
    .with_for_update(read=True, of=leases),
    "RENEW_LEASES": update(leases)
    .where(leases.c.daemon == _mine)
    .values(expires=_lapses)
    .returning(leases.c.run_id, leases.c.epoch),
    "RELEASE_RUN": delete(leases).where(*_this_lease),
    "RELEASE_ALL": delete(leases).where(leases.c.daemon == _mine),
    "LEASED_RUNS": select(leases.c.run_id).where(leases.c.expires > _now),
    "LIVE_LEASES": select(func.count()).select_from(leases).where(leases.c.expires > _now),
}

_has_owner = (
    select(leases.c.run_id)
    .where(leases.c.run_id == runs.c.run_id, leases.c.expires > _now)
    .exists()
)
_open = [literal_column(f"'{state}'", Text) for state in RunState if not state.is_final]

OF_TAKEOVER: Mapping[str, ClauseElement] = {
    # Oldest first, as they were asked for.
    "FREE_RUNS": select(runs.c.run_id)
    .where(~runs.c.deleted, runs.c.state.in_(_open), ~_has_owner)
    .order_by(runs.c.run_id),
}

OF_UPLOADS: Mapping[str, ClauseElement] = {
    "INSERT_UPLOAD": insert(uploads)
    .values(digest=bindparam("digest"), size=bindparam("size"), used=_now)
    .on_conflict_do_nothing(),
    "INSERT_UPLOAD_PART": insert(upload_parts).values(
        digest=bindparam("digest"), number=bindparam("number"), body=bindparam("body")
    ),
    "USE_UPLOAD": update(uploads).where(_this_upload).values(used=_now),
    "READ_UPLOAD_PART": select(upload_parts.c.body).where(
        upload_parts.c.digest == bindparam("digest"),
        upload_parts.c.number == bindparam("number"),
    ),
    "READ_LAST_PART": select(upload_parts.c.body)
    .where(upload_parts.c.digest == bindparam("digest"))
    .order_by(upload_parts.c.number.desc())
    .limit(_one),
    "UPLOADED_BYTES": select(func.coalesce(func.sum(uploads.c.size), literal_column("0"))),
    "UNUSED_UPLOADS": select(uploads.c.digest).where(
        uploads.c.used <= _now - _seconds
    ),
    "ALL_UPLOADS": select(uploads.c.digest).order_by(uploads.c.digest),
    "DELETE_UPLOAD": delete(uploads).where(
        _this_upload, uploads.c.used <= _now - _seconds
    ),
}

OF_SHARING: Mapping[str, Any] = {**OF_COMMITS, **OF_LEASES, **OF_TAKEOVER, **OF_UPLOADS}
