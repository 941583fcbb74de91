"""A second process on a store: appends rows and says which are acknowledged, or holds a lock."""

import asyncio
import sys
from pathlib import Path

from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.storage.sqlite import SqliteStore


def row(ordinal: int) -> RowScored:
    text = f"output {ordinal} " * 20
    return RowScored(
        EvalRow("a", ordinal, {"f1": 1.0}, 1, 1, ordinal=ordinal, processed={"response": text})
    )


async def append(store: SqliteStore, run_id: str, start: int, stop: int) -> None:
    """Append rows from eight tasks, and print each seq once it is acknowledged."""
    ordinals = iter(range(start, stop))

    async def work() -> None:
        for ordinal in ordinals:
            seq = await store.append(run_id, [row(ordinal)])
            print(seq, ordinal, flush=True)

    await asyncio.gather(*(work() for _ in range(8)))


async def main() -> None:
    home, what, run_id, *numbers = sys.argv[1:]
    store = SqliteStore.open(Path(home))
    if what == "append":
        start, stop = map(int, numbers)
        await append(store, run_id, start, stop)
    else:
        with store.lock_run(run_id) as is_held:
            print(is_held, flush=True)
            sys.stdin.read()
    await store.close()


asyncio.run(main())
