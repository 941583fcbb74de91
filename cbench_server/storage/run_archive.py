"""Archives: finished runs as files in a folder, each read back before the store lets it go.

Whoever is killed meanwhile leaves the run in the store, or a file that is all of it; doing it
again goes on from there.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from cbench_server.durable import failpoints
from cbench_server.durable.files import put_in_place
from cbench_server.errors import StoreError, UnknownRun, WrongState
from cbench_server.spec import Run
from cbench_server.storage.connection import explained_by
from cbench_server.storage.locks import is_run_id
from cbench_server.storage.run_export import export_frames
from cbench_server.storage.run_files import export_run
from cbench_server.storage.run_format import (
    BadRunFile,
    EventFrame,
    RunFrame,
    compressed,
    content_digest,
    read_run_file,
)
from cbench_server.storage.run_rows import get_run
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.store_copy import claimed

SUFFIX = ".run.gz"


@dataclass(frozen=True)
class Archived:
    """A run that is in its file and no longer in the store."""

    run_id: str
    file: Path
    size: int
    rows: int


async def archive_run(
    store: SqlStore, folder: Path, run_id: str, summary: Callable[[Run], bytes]
) -> Archived:
    """Write a finished run into a folder, read the file back, and delete the run.

    `summary` is written beside it, so that one can tell which file to read back.
    """
    run = await store.read(get_run, run_id)
    if not run.state.is_final:
        raise WrongState(
            f'run "{run_id}" is not over ({run.state}). Wait for its end, or cancel it '
            f"(cbench cancel {run_id}), and archive it then."
        )
    path = folder / f"{run_id}{SUFFIX}"
    async with claimed(store, run_id) as claim:
        if claim is None:
            raise WrongState(store.unwritable)
        await asyncio.to_thread(_place, store, run_id, path)
        await asyncio.to_thread(_write, folder / f"{run_id}.json", [summary(run)])
        failpoints.hit("archive.verified")
        await store.delete_owned(claim)
    return Archived(run_id, path, path.stat().st_size, run.completed_rows)


def archived_already(folder: Path, run_id: str) -> Archived:
    """Return what was made of a run that the store has let go; raise `UnknownRun`."""
    path = folder / f"{run_id}{SUFFIX}"
    if not is_run_id(run_id) or not path.is_file():
        raise UnknownRun(run_id)
    rows = 0
    for frame in read_run_file(path):
        if isinstance(frame, RunFrame) and frame.run_id != run_id:
            raise BadRunFile(f'{path} holds another run, "{frame.run_id}".')
        rows += isinstance(frame, EventFrame) and frame.system is not None
    return Archived(run_id, path, path.stat().st_size, rows)


def _place(store: SqlStore, run_id: str, path: Path) -> None:
    """Have the run in its file, and nothing else there."""
    with (
        explained_by(store.database),
        closing(store.database.connect(read_only=True)) as connection,
    ):
        stored = content_digest(export_frames(connection, run_id))
    is_old = path.exists()
    if not is_old:
        with export_run(store.database, run_id) as parts:
            _write(path, compressed(parts))
    try:
        found = content_digest(read_run_file(path))
    except BadRunFile as error:
        raise StoreError(f"{error} Nothing was deleted; move the file away.") from error
    if found != stored:
        what = "is there already, and is not" if is_old else "does not read back as"
        raise StoreError(
            f'{path} {what} the run "{run_id}" that the store has. Nothing was deleted. Move the '
            "file away, and archive again."
        )


def _write(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file so that it is there after a power cut, or not at all."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            for each in parts:
                file.write(each)
                failpoints.hit("archive.writing")
            put_in_place("archive", file, part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(
            f"cannot write {path}: {error.strerror}. Nothing was deleted; make room, or name "
            "another folder with --to."
        ) from error
