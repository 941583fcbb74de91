"""Bits, pages and logs that change on the disk: what is read is true, or said to be damaged."""

import random
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused
from cbench_server.errors import CbenchError, StoreError
from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowQuery, SpooledExample
from cbench_server.spec import Run, RunSpec, RunState
from cbench_server.storage.inspection import Inspection
from cbench_server.storage.sqlite import SqliteStore
from tests.e2e.processes import DaemonProcess

ROWS, RUNS = 12, ("r1", "r2")
PAGE = 4096


def row(run_id: str, ordinal: int) -> EvalRow:
    processed = {"response": f"{run_id} answers {ordinal} " * 20}
    return EvalRow("a", ordinal, {"f1": 0.5}, 7, 3, ordinal=ordinal, processed=processed)


def example(run_id: str, ordinal: int) -> SpooledExample:
    fields = {"id": ordinal, "context": f"{run_id} word {ordinal} " * 30}
    return SpooledExample(ordinal, "given", ordinal, fields, f"digest {ordinal}", {"context": 90})


async def write(home: Path, run_id: str) -> None:
    store = SqliteStore.open(home)
    try:
        run = Run(run_id, RunSpec((), ()), RunState.RUNNING, 1.0, systems=("a",))
        await store.create_run(run)
        await store.add_examples(run_id, [example(run_id, n) for n in range(ROWS)], complete=True)
        rows = [RowScored(row(run_id, n)) for n in range(ROWS)]
        await store.append(run_id, rows, update={"state": RunState.SUCCEEDED, "end_time": 2.0})
    finally:
        await store.close()


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    for run_id in RUNS:
        await write(tmp_path / "home", run_id)
    return tmp_path / "home"


async def everything(store: SqliteStore, run_id: str) -> list[Any]:
    events: list[Any] = []
    while page := await store.read_events(run_id, len(events), processed=True):
        events += page
    query = RowQuery(processed=True, original=True)
    return [await store.get_run(run_id), events, await store.read_rows(run_id, query)]


async def readable(home: Path) -> AsyncIterator[tuple[str, list[Any] | None]]:
    """Yield each run with what can be read of it; None if it is said to be damaged."""
    try:
        store = SqliteStore.open(home)
    except StoreError:
        for run_id in RUNS:
            yield run_id, None
        return
    try:
        for run_id in RUNS:
            try:
                yield run_id, await everything(store, run_id)
            except CbenchError:
                yield run_id, None
    finally:
        await store.close()


async def truth(home: Path) -> dict[str, list[Any] | None]:
    return {run_id: found async for run_id, found in readable(home)}


async def try_damage(home: Path, changed: bytes, expected: dict[str, Any]) -> int:
    """Read a damaged store: nothing that is false; return how many runs met the damage."""
    path = home / "cbench.db"
    for leftover in home.glob("cbench.db*"):
        leftover.unlink()
    path.write_bytes(changed)
    met = 0
    async for run_id, found in readable(home):
        assert found is None or found == expected[run_id]
        met += found is None
    return met


@pytest.mark.parametrize("trials", [40, pytest.param(1000, marks=pytest.mark.faults)])
async def test_a_bit_flipped_anywhere_is_never_read_as_truth(
    home: Path, chance: random.Random, trials: int
) -> None:
    whole, expected = (home / "cbench.db").read_bytes(), await truth(home)
    assert None not in expected.values()
    met = []
    for _ in range(trials):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        met.append(await try_damage(home, bytes(damaged), expected))
    assert trials - met.count(0) > trials // 10
    # A bit of one run costs no other.
    assert met.count(1) > met.count(2)


@pytest.mark.parametrize("rounds", [1, pytest.param(5, marks=pytest.mark.faults)])
@pytest.mark.parametrize("how", ["zeroed", "overwritten", "cut off"])
async def test_a_page_that_is_zeroed_or_overwritten_or_missing_is_never_read_as_truth(
    home: Path, chance: random.Random, how: str, rounds: int
) -> None:
    """Each page in turn, since about half of them hold something that is read."""
    whole, expected = (home / "cbench.db").read_bytes(), await truth(home)
    pages = len(whole) // PAGE
    met = 0
    for page in [*range(pages)] * rounds:
        place, other = PAGE * page, PAGE * chance.choice([*range(page), *range(page + 1, pages)])
        with_instead = {
            "zeroed": bytes(PAGE) + whole[place + PAGE :],
            "overwritten": whole[other : other + PAGE] + whole[place + PAGE :],
            "cut off": whole[place : place + chance.randrange(PAGE)],
        }[how]
        met += await try_damage(home, whole[:place] + with_instead, expected) > 0
    assert met > pages * rounds // 4


@pytest.mark.parametrize("how", ["flipped", "zeroed", "cut off", "removed"])
async def test_a_damaged_log_gives_what_was_or_nothing(
    home: Path, chance: random.Random, how: str
) -> None:
    """What the write-ahead log held may be gone with it, but is never another."""
    before = await truth(home)
    store = SqliteStore.open(home)
    await store.append("r1", [], update={"timing": {"a": 2.0}})
    after = await everything(store, "r1")
    files = {path.name: path.read_bytes() for path in home.glob("cbench.db*")}
    await store.close()
    log = files["cbench.db-wal"]
    assert log
    for trial in range(20):
        damaged = bytearray(log)
        place = chance.randrange(len(log))
        if how == "flipped":
            damaged[place] ^= 1 << chance.randrange(8)
        elif how == "zeroed":
            damaged[place : place + PAGE] = bytes(len(damaged[place : place + PAGE]))
        elif how == "cut off":
            del damaged[place:]
        copy = home.parent / f"copy {trial}"
        copy.mkdir()
        (copy / "cbench.db").write_bytes(files["cbench.db"])
        if how != "removed":
            (copy / "cbench.db-wal").write_bytes(damaged)
        found = await truth(copy)
        assert found["r2"] == before["r2"]
        assert found["r1"] in (before["r1"], after, None)
        shutil.rmtree(copy)


def test_a_daemon_serves_what_is_whole_beside_what_is_damaged(
    home: Path, chance: random.Random
) -> None:
    path = home / "cbench.db"
    whole = path.read_bytes()
    place = whole.index(b"r1 answers") if b"r1 answers" in whole else whole.rindex(b"digest")
    damaged = bytearray(whole)
    damaged[place] ^= 4
    path.write_bytes(damaged)
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        read, refused = [], []
        for run_id in RUNS:
            try:
                rows = list(client.rows(run_id, include_processed=True, include_original=True))
                read.append((run_id, len(rows)))
            except Refused as error:
                refused.append(error.code)
        assert len(read) == 1
        assert read[0][1] == ROWS
        assert refused == ["DATA_LOSS"]
        assert len(list(client.list())) == 2
    assert list(Inspection().of_home(home))


def test_a_run_whose_name_is_no_text_any_more_hides_no_other(home: Path) -> None:
    with closing(sqlite3.connect(home / "cbench.db")) as store, store:
        store.execute("UPDATE runs SET run_id = CAST(x'F231' AS TEXT) WHERE run_id = 'r1'")
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        damaged, whole = client.list()
        assert (whole.run_id, whole.state) == ("r2", 3)
        assert (damaged.run_id, damaged.failure.reason) == ("\\udcf21", "STORE_CORRUPT")
