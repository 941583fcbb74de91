"""Examples reach every lane while they are written, and are stored before their rows."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cbench_server.errors import BadDataset, Unencodable
from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.runs.digests import canonical_digest
from cbench_server.runs.spool import Spool
from cbench_server.runs.store import RowQuery, SpooledExample
from cbench_server.spec import DatasetRef, Run, RunSpec, RunState, SystemRef
from cbench_server.storage.sqlite import SqliteStore

SIZE = 20_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore.open(tmp_path)
    spec = RunSpec(systems=(SystemRef(name="a", builtin="identity"),), datasets=(DatasetRef("d"),))
    await store.create_run(Run("r", spec, RunState.RUNNING, 1.0, systems=("a",)))
    yield store
    await store.close()


def examples(count: int) -> Iterator[SpooledExample]:
    for n in range(count):
        example = {"id": n, "context": "x" * SIZE}
        yield SpooledExample(n, "d", n, example, canonical_digest(example), {}, SIZE)


async def read_all(spool: Spool) -> list[int]:
    found: list[int] = []
    while page := await spool.page(len(found), 64):
        found += [each.ordinal for each in page]
    return found


@pytest.mark.parametrize("readers", [1, 2])
async def test_every_lane_reads_every_example_in_order(store: SqliteStore, readers: int) -> None:
    count = 700  # 14 MB, of which 1 MB is kept.
    spool = Spool(store, "r", {"d": lambda first: examples(count)}, readers, is_fresh=True)
    _, *found = await asyncio.gather(spool.fill(), *(read_all(spool) for _ in range(readers)))
    assert found == [list(range(count))] * readers
    assert await store.spooled("r") == (count, True)


async def test_a_lane_gets_examples_before_they_are_stored(
    store: SqliteStore, tmp_path: Path
) -> None:
    spool = Spool(store, "r", {"d": lambda first: examples(3)}, 1, is_fresh=True)
    other = sqlite3.connect(tmp_path / "cbench.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")  # Nothing can be stored now.
    filling = asyncio.create_task(spool.fill())
    assert len(await spool.page(0, 64)) == 3
    assert await store.spooled("r") == (0, False)
    other.execute("ROLLBACK")
    other.close()
    await filling


async def test_an_example_is_stored_before_its_row(store: SqliteStore) -> None:
    chunk = list(examples(200))
    adding = asyncio.create_task(store.add_examples("r", chunk))
    await asyncio.sleep(0)
    row = EvalRow("a", 199, {}, 1, 1, ordinal=199, dataset="d")
    await store.append("r", [RowScored(row)])
    page = await store.read_rows("r", RowQuery(original=True))
    assert page.originals == [chunk[199].example]
    await adding


async def test_a_bad_example_ends_the_loading(store: SqliteStore) -> None:
    def bad(first: int) -> Iterator[SpooledExample]:
        yield from examples(20)
        raise BadDataset("position 20 is bad")

    spool = Spool(store, "r", {"d": bad}, 1, is_fresh=True)
    with pytest.raises(ExceptionGroup) as caught:
        await spool.fill()
    assert caught.group_contains(BadDataset, match="position 20")


async def test_an_example_that_cannot_be_stored_is_named(store: SqliteStore) -> None:
    spooled = SpooledExample(0, "d", 0, {"id": 0, "context": "\ud800"}, "")
    with pytest.raises(Unencodable, match="context"):
        store.pack_examples([spooled])
    with pytest.raises(Unencodable, match="context"):
        await store.add_examples("r", [spooled])
