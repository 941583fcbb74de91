"""CPU time of the store for a row: written with others and alone, and read back.

    python benchmarks/store_rows.py [--rows 20000] [--against CHECKOUT] [--turns 5]

With --against, both checkouts take turns in fresh processes, so that a slow minute hits each;
figures are medians. All are microseconds of CPU time of the whole process, kernel included.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from checkouts import HERE, run_in
from parts import table

TASKS, BATCH, ALONE = 32, 8, 500


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=400)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--json", action="store_true", help="one turn, here")
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps(asyncio.run(measure(arguments.rows, arguments.size))))
        return
    checkouts = [HERE, *([arguments.against] if arguments.against else [])]
    flags = ("--json", "--rows", str(arguments.rows), "--size", str(arguments.size))
    turns = [
        {checkout: run_in(checkout, "store_rows.py", *flags) for checkout in checkouts}
        for _ in range(arguments.turns)
    ]
    lines = []
    for name in turns[0][HERE]:
        medians = [statistics.median(turn[each][name] for turn in turns) for each in checkouts]
        ratio = [f"{medians[0] / medians[1]:.3f}"] if arguments.against else []
        lines.append([name, *(f"{median:,.2f}" for median in medians), *ratio])
    heads = ["us of CPU", "here", *(["against", "ratio"] if arguments.against else [])]
    print(table(heads, lines))


async def measure(rows: int, size: int) -> dict[str, float]:
    """Write and read rows in a store of its own."""
    from cbench_server.events import RowScored
    from cbench_server.results import EvalRow
    from cbench_server.runs.store import RowQuery
    from cbench_server.spec import DatasetRef, Run, RunSpec, RunState, SystemRef
    from cbench_server.storage.sqlite import SqliteStore

    def row(ordinal: int) -> RowScored:
        output = {"response": "x" * size}
        return RowScored(
            EvalRow("a", ordinal, {"f1": 0.5}, 100, 20, ordinal=ordinal, processed=output)
        )

    spec = RunSpec(systems=(SystemRef(name="a", builtin="x"),), datasets=(DatasetRef("qa"),))
    found: dict[str, float] = {}

    async def timed(name: str, count: int, work: Callable[[], Awaitable[None]]) -> None:
        started = time.process_time()
        await work()
        found[name] = (time.process_time() - started) / count * 1e6

    with tempfile.TemporaryDirectory() as home:
        store = SqliteStore.open(Path(home))
        for number in range(200):
            await store.create_run(Run(f"r{number:03}", spec, RunState.RUNNING, 1.0))
        ordinals = iter(range(rows // BATCH))

        async def write() -> None:
            for each in ordinals:
                batch = [row(each * BATCH + place) for place in range(BATCH)]
                await store.append("r000", batch)

        async def write_all() -> None:
            await asyncio.gather(*(write() for _ in range(TASKS)))

        async def write_alone() -> None:
            for ordinal in range(ALONE):
                await store.append("r001", [row(ordinal)])

        async def read_events() -> None:
            seen = 0
            while page := await store.read_events("r000", seen, processed=True):
                seen = page[-1].seq

        async def read_rows() -> None:
            token: str | None = None
            while True:
                page = await store.read_rows("r000", RowQuery(processed=True), token)
                token = page.next_token
                if token is None:
                    return

        async def list_runs() -> None:
            for _ in range(5):
                await store.list_runs(limit=200)

        await timed("a row, written with others", rows, write_all)
        await timed("a row, written alone", ALONE, write_alone)
        await timed("a row, read as an event", rows, read_events)
        await timed("a row, read in order", rows, read_rows)
        await timed("a run, listed", 1000, list_runs)
        await store.close()
    return found


if __name__ == "__main__":
    main()
