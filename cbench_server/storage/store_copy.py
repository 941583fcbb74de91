"""Copies of runs from one store into another, of whichever kinds, each verified when it is there.

A run travels as the frames of a run file. It is hidden until all of it is stored, so who is
killed meanwhile leaves nothing that the next copy would not begin again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Literal

from cbench_server.errors import AlreadyExists, CbenchError, StoreAway, StoreError, WrongState
from cbench_server.runs.ownership import Claim
from cbench_server.storage.connection import Connection, explained_by
from cbench_server.storage.opening import LEASE_SECONDS
from cbench_server.storage.run_export import export_frames
from cbench_server.storage.run_files import import_file
from cbench_server.storage.run_format import content_digest
from cbench_server.storage.run_import import RunFile
from cbench_server.storage.run_list import run_ids
from cbench_server.storage.run_rows import get_run
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.uploads import UploadStore

_ASK_AGAIN_S = 0.5
_MORE_S = 5.0


@dataclass(frozen=True)
class Copied:
    """What became of one run or upload."""

    name: str
    outcome: Literal["copied", "there already", "left out"]
    why: str = ""
    """Why it was left out."""
    rows: int = 0


async def copy_store(
    source: SqlStore, target: SqlStore, chosen: Collection[str] = ()
) -> AsyncIterator[Copied]:
    """Copy runs, oldest first, all of them unless some are chosen; one that cannot be harms none.

    Raises StoreAway where one of the stores is gone, which is so for all runs.
    """
    for run_id in chosen or await source.read(run_ids):
        try:
            yield await _copy_run(source, target, run_id)
        except StoreAway:
            raise
        except CbenchError as error:
            yield Copied(run_id, "left out", str(error))


async def _copy_run(source: SqlStore, target: SqlStore, run_id: str) -> Copied:
    run = await source.read(get_run, run_id)
    if not run.state.is_final:
        raise WrongState(
            f'run "{run_id}" is not over ({run.state}): in two stores it would be worked on '
            f"twice. Wait for its end, or cancel it (cbench cancel {run_id}), and copy again."
        )
    async with claimed(source, run_id), claimed(target, run_id) as claim:
        with (
            explained_by(source.database),
            closing(source.database.connect(read_only=True)) as connection,
        ):
            frames = export_frames(connection, run_id)
            name = f'run "{run_id}" of {source.database.name}'
            file = await asyncio.to_thread(RunFile, name, frames)
            try:
                assert claim is not None
                _, is_new = await import_file(target, file, claim)
            except AlreadyExists as error:
                raise AlreadyExists(
                    f'{target.database.name} has another run "{run_id}". Delete one of the two, '
                    "or bring this one by a file: cbench export --format run, cbench import "
                    "--new-id."
                ) from error
            finally:
                await asyncio.to_thread(frames.close)
        sums = [await store.read(_digest, run_id) for store in (source, target)]
        if sums[0] != sums[1]:
            raise StoreError(
                f'run "{run_id}" is not the same in {target.database.name} as in '
                f"{source.database.name}. Delete it there, and copy again."
            )
    return Copied(run_id, "copied" if is_new else "there already", rows=run.completed_rows)


@asynccontextmanager
async def claimed(store: SqlStore, run_id: str) -> AsyncIterator[Claim | None]:
    """Own a run for the context; a store that can only be read has no owners.

    One that was killed owns its run until its lease has lapsed, which is waited for.
    """
    claim = None
    ends_at = time.monotonic() + LEASE_SECONDS + _MORE_S
    while not store.unwritable and (claim := await store.owners.acquire(run_id)) is None:
        if time.monotonic() > ends_at:
            raise WrongState(f'run "{run_id}" is being worked on in {store.database.name}.')
        await asyncio.sleep(_ASK_AGAIN_S)
    try:
        yield claim
    finally:
        if claim is not None:
            await store.owners.release(claim)


def _digest(connection: Connection, run_id: str) -> bytes:
    """Read all of a run, whose checksums are verified."""
    return content_digest(export_frames(connection, run_id))


def copy_uploads(source: UploadStore, target: UploadStore) -> Iterator[Copied]:
    """Copy the examples that clients sent, which are known by the digest of what they are."""
    there = set(target.all())
    for digest in source.all():
        if digest in there:
            yield Copied(digest, "there already")
            continue
        try:
            with target.writer() as writer:
                for example in source.iterate(digest):
                    writer.add(example)
                if writer.digest != digest:
                    raise StoreError(f"the upload {digest} is not what its name says.")
                writer.finish()
            yield Copied(digest, "copied")
        except StoreAway:
            raise
        except CbenchError as error:
            yield Copied(digest, "left out", str(error))
