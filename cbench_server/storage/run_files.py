"""Files of runs: written from a store and read into one, whole or not at all."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from cbench_server.durable import failpoints
from cbench_server.errors import AlreadyExists, UnknownRun, WrongState
from cbench_server.runs.ownership import Claim
from cbench_server.spec import Run
from cbench_server.storage import retention, run_export, run_format, run_rows
from cbench_server.storage.connection import Database, explained_by
from cbench_server.storage.cut_off import readable
from cbench_server.storage.import_room import Room
from cbench_server.storage.import_spool import ImportSpool, ImportSpools
from cbench_server.storage.run_import import Batch, RunFile
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.transaction import Transaction


class StoredRunFiles:
    """The runs of a store, as files."""

    def __init__(self, store: SqlStore, room: Room, spools: ImportSpools) -> None:
        self._store = store
        self._room = room
        self._spools = spools

    def export(self, run_id: str) -> AbstractContextManager[Iterator[bytes]]:
        """Open a run as the bytes of a file."""
        return export_run(self._store.database, run_id)

    def spool(self) -> ImportSpool:
        """Start a file for what a client sends; it blocks on the disk."""
        return self._spools.open()

    async def read(self, path: Path, new_id: str) -> tuple[Run, bool]:
        """Store the run of a file; return it, and whether it is new here."""
        return await import_run(self._store, path, new_id=new_id, room=self._room)


@contextmanager
def export_run(database: Database, run_id: str) -> Iterator[Iterator[bytes]]:
    """Open a stored run as the bytes of a file, as it is now."""
    with ExitStack() as stack:
        with explained_by(database):
            connection = stack.enter_context(closing(database.connect(read_only=True)))
        yield _encoded(database, run_export.export_frames(connection, run_id))


@contextmanager
def salvage_run(
    database: Database, run_id: str
) -> Iterator[tuple[run_export.Survey, Iterator[bytes]]]:
    """Open what can be read of a run as the bytes of a file, with what was found out of it."""
    with ExitStack() as stack:
        with explained_by(database):
            whole = stack.enter_context(readable(database))
            connection = stack.enter_context(closing(whole.connect(read_only=True)))
            stack.enter_context(run_rows.snapshot(connection))
            found = run_export.survey(connection, run_id)
        yield found, _encoded(database, found.frames())


def _encoded(database: Database, frames: Iterable[run_format.Frame]) -> Iterator[bytes]:
    """Encode frames; of the store is told what is met in reading it, and not by who takes them."""
    with explained_by(database):
        yield from run_format.encode_frames(frames)


async def import_run(
    store: SqlStore, path: Path, *, new_id: str = "", room: Room | None = None
) -> tuple[Run, bool]:
    """Store the run of a file; return it, and whether it is new here.

    It keeps its id unless it is given another. One that is here already, and the same, is
    left alone; another run of that id raises AlreadyExists. Nothing is seen of it before all is
    stored, and nothing is left of one that fails.
    """
    room = room or Room()
    frames = run_format.read_run_file(path, room)
    file = await asyncio.to_thread(RunFile, path, frames, new_id, room)
    run_id = file.run.run_id
    claim = await store.owners.acquire(run_id)
    if claim is None:
        raise WrongState(f'run "{run_id}" is being worked on by another process.')
    try:
        return await import_file(store, file, claim)
    finally:
        await store.owners.release(claim)


async def import_file(store: SqlStore, file: RunFile, claim: Claim) -> tuple[Run, bool]:
    """Store a run that this process owns here; see `import_run`."""
    run_id = claim.run_id
    if run_id in await store.read(retention.half_deleted):
        await store.delete_owned(claim)
    if await _is_here(store, file):
        return await store.get_run(run_id), False
    await store.writer.write(lambda write: write.begin_import(file), grows=True)
    failpoints.hit("import.begun")
    try:
        while batch := await asyncio.to_thread(file.next_batch):
            await store.writer.write(
                partial(_import_batch, run_id, batch), size=batch.size, grows=True
            )
            failpoints.hit("import.batch")
        await store.writer.write(lambda write: write.finish_import(file))
        failpoints.hit("import.finished")
    except BaseException:
        await asyncio.shield(store.delete_owned(claim))
        raise
    return await store.get_run(run_id), True


def _import_batch(run_id: str, batch: Batch, write: Transaction) -> None:
    write.import_batch(run_id, batch)


async def _is_here(store: SqlStore, file: RunFile) -> bool:
    try:
        head = await store.read(run_rows.find_run, file.run.run_id)
    except UnknownRun:
        return False
    theirs, frame = file.head(), file.frame
    if (head.record_sum, head.last_seq, head.examples) == (
        theirs.record_sum,
        frame.last_seq,
        frame.examples,
    ):
        return True
    raise AlreadyExists(
        f'there is another run "{head.run_id}" already. Import this one under a new id '
        "(cbench import FILE --new-id), or delete the other."
    )
