"""A store shared by processes, some of which are killed."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from cbench_server.errors import WrongState
from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.spec import Run
from cbench_server.storage.sql_store import SqlStore
from tests.fixtures import preloaded
from tests.fixtures.stores import Place

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
Start = Callable[..., Awaitable[Process]]


@pytest.fixture
async def start(place: Place) -> AsyncIterator[Start]:
    """Start child.py on the store; what still runs at the end is killed."""
    children: list[Process] = []

    async def start_child(*arguments: str) -> Process:
        script = str(Path(__file__).with_name("child.py"))
        with preloaded.in_asyncio():
            child = await asyncio.create_subprocess_exec(
                sys.executable, script, place.argument, *arguments, stdin=PIPE, stdout=PIPE
            )
        children.append(child)
        return child

    yield start_child
    for child in children:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def line(child: Process) -> str:
    assert child.stdout is not None
    return (await child.stdout.readline()).decode().strip()


async def acknowledged_until_killed(child: Process, after_lines: int) -> dict[int, int]:
    """Kill the child after some lines; return ordinals by the seqs it acknowledged."""
    lines = [await line(child) for _ in range(after_lines)]
    child.kill()
    assert child.stdout is not None
    rest = (await child.stdout.read()).decode()
    await child.wait()
    # The last line may be cut off by the kill.
    whole = [*lines, *rest.splitlines()[: rest.count("\n")]]
    return {int(seq): int(ordinal) for seq, ordinal in map(str.split, whole)}


@pytest.mark.slow
async def test_what_was_acknowledged_survives_kills(
    place: Place, start: Start, make_run: MakeRun
) -> None:
    store = place.open()
    await store.create_run(make_run())
    await store.close()
    seen: dict[int, int] = {}
    stored: dict[int, int] = {}
    for after_lines in (1, 7, 100, 450, 33):
        first = max(stored.values(), default=-1) + 1
        child = await start("append", "r1", str(first), "1000000")
        seen |= await acknowledged_until_killed(child, after_lines)
        stored = await contents(place)
        assert list(stored) == list(range(2, len(stored) + 2))
        assert {seq: stored[seq] for seq in seen} == seen
    last = max(stored.values())
    child = await start("append", "r1", "0", str(last + 1))
    await child.communicate()
    complete = await contents(place)
    assert complete.items() >= stored.items()
    assert sorted(complete.values()) == list(range(last + 1))


async def contents(place: Place) -> dict[int, int]:
    """Open the store and return the ordinals of the run's rows by seq, checking its counters."""
    store = place.open()
    stored = await everything(store, "r1")
    run = await store.get_run("r1")
    await store.close()
    assert (run.last_seq, run.completed_rows) == (len(stored) + 1, len(stored))
    return stored


async def everything(store: SqlStore, run_id: str) -> dict[int, int]:
    """Return the ordinals of all stored rows by seq."""
    found: dict[int, int] = {}
    after = 1
    while page := await store.read_events(run_id, after, processed=True):
        for stored in page:
            assert isinstance(stored.event, RowScored)
            found[stored.seq] = stored.event.row.ordinal
        after = page[-1].seq
    return found


async def test_two_processes_write_one_store_and_watch_each_other(
    store: SqlStore, start: Start, make_run: MakeRun, make_row: MakeRow
) -> None:
    for run_id in ("r1", "r2"):
        await store.create_run(make_run(run_id))
    child = await start("append", "r2", "0", "300")
    for first in range(0, 300, 10):
        await store.append("r1", [RowScored(make_row(first + n)) for n in range(10)])
    seen = 1
    while seen < 301:
        assert await store.wait_for_events("r2", seen, 60.0)
        seen = (await store.read_events("r2", seen))[-1].seq
    assert await child.wait() == 0
    assert sorted((await everything(store, "r1")).values()) == list(range(300))
    assert sorted((await everything(store, "r2")).values()) == list(range(300))


async def test_two_processes_may_create_the_store_at_once(place: Place, start: Start) -> None:
    children = [await start("lock", f"r{number}") for number in range(4)]
    assert [await line(child) for child in children] == ["True"] * 4


async def test_a_lock_lasts_as_long_as_its_process(
    store: SqlStore, place: Place, start: Start, make_run: MakeRun
) -> None:
    await store.create_run(make_run())
    child = await start("lock", "r1")
    assert await line(child) == "True"
    assert await store.owners.acquire("r1") is None
    with pytest.raises(WrongState, match="being worked on"):
        await store.delete_run("r1")
    child.kill()
    await child.wait()
    async with asyncio.timeout(60):
        while (claim := await store.owners.acquire("r1")) is None:
            assert not place.is_sqlite  # The kernel drops a lock; a lease lapses.
            await asyncio.sleep(0.1)
    assert claim is not None
    assert await store.owners.acquire("r1") is None
