"""Summary program: summarises one run of a store; `summarize_apart` starts it.

A long run takes a hundred bytes per row while it is summarised. A daemon would
never give them back to the system; a separate program does.

    python -m cbench_server.daemon.summary_program HOME RUN_ID [MODULE...]
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from cbench_server.daemon.imports import import_modules
from cbench_server.errors import StoreAway, StoreError
from cbench_server.metrics.summary import Summarized

# A program that takes longer hangs; a slow machine takes 0.1 ms for a row.
_TIMEOUT_S = 1800.0
_TIMEOUT_PER_ROW_S = 0.002


async def summarize_apart(
    home: Path, store: str, imports: Sequence[str], run_id: str, rows: int = 0
) -> Summarized:
    """Summarise a stored run of so many rows in another process.

    Raises StoreAway where that one cannot reach the store.
    """
    limit = _TIMEOUT_S + rows * _TIMEOUT_PER_ROW_S
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "cbench_server.daemon.summary_program",
        str(home),
        run_id,
        *imports,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # Not among the arguments, which everybody on the machine may read.
        env={**os.environ, "CBENCH_STORE": store},
    )
    try:
        async with asyncio.timeout(limit):
            said, complaint = await process.communicate()
    except TimeoutError:
        raise StoreError(
            f'run "{run_id}" could not be summarised within {limit:,.0f} s. Its rows are stored; '
            "resume it to have that tried again."
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        if process.returncode < 0:
            last = (
                f"the program that does it was ended by {signal.Signals(-process.returncode).name}."
                " Its rows are stored; resume it to have that tried again."
            )
        kind = StoreAway if process.returncode == os.EX_TEMPFAIL else StoreError
        raise kind(f'run "{run_id}" could not be summarised: {last}')
    return msgspec.json.decode(said, type=Summarized)


async def _summarize(home: Path, run_id: str) -> Summarized:
    from cbench_server.registry import registry
    from cbench_server.runs.summary import read_back
    from cbench_server.storage.opening import open_store

    store = open_store(home, os.environ.get("CBENCH_STORE", ""))
    try:
        run = await store.get_run(run_id)
        return (await read_back(store, run, registry)).result(run.unranked)
    finally:
        await store.close()


def main() -> int:
    """Print the summary as JSON."""
    home, run_id, *imports = sys.argv[1:]
    # What the modules and metrics of others print must not get into the summary.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        return _answer(Path(home), run_id, imports, answers)


def _answer(home: Path, run_id: str, imports: Sequence[str], answers: BinaryIO) -> int:
    import_modules(imports)
    try:
        summary = asyncio.run(_summarize(home, run_id))
    except StoreAway as error:
        print(error, file=sys.stderr)
        return os.EX_TEMPFAIL
    answers.write(msgspec.json.encode(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
