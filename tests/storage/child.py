"""A second process on a store: appends rows, imports a file, uploads, or holds a lock."""

import asyncio
import sys
from pathlib import Path

from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.storage.run_files import import_run
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.uploads import UploadStore
from tests.fixtures.stores import Place


def row(ordinal: int) -> RowScored:
    text = f"output {ordinal} " * 20
    return RowScored(
        EvalRow("a", ordinal, {"f1": 1.0}, 1, 1, ordinal=ordinal, processed={"response": text})
    )


async def append(store: SqlStore, run_id: str, start: int, stop: int) -> None:
    """Append rows from eight tasks, and print each seq once it is acknowledged."""
    ordinals = iter(range(start, stop))

    async def work() -> None:
        for ordinal in ordinals:
            seq = await store.append(run_id, [row(ordinal)])
            print(seq, ordinal, flush=True)

    await asyncio.gather(*(work() for _ in range(8)))


async def main() -> None:
    home, what, run_id, *numbers = sys.argv[1:]
    store = Place(Path(home), home if home.startswith("postgresql:") else "").open(
        lease_seconds=3.0
    )
    if what == "append":
        start, stop = map(int, numbers)
        await append(store, run_id, start, stop)
    elif what == "import":
        await import_run(store, Path(run_id))
    elif what == "upload":
        with UploadStore(Path(home)).writer() as writer:
            writer.add({"id": 1})
            print(True, flush=True)
            sys.stdin.read()
    else:
        print(await store.owners.acquire(run_id) is not None, flush=True)
        sys.stdin.read()
    await store.close()


asyncio.run(main())
