"""A flipped bit in any column of any table is noticed, and harms no other run.

The tables and columns are those of the schema, so a new one is tested by itself.
"""

import random
import sqlite3
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_server.errors import DamagedRun, StoreError, UnknownRun
from cbench_server.events import RowScored, Stored
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowQuery, SpooledExample
from cbench_server.spec import Run, RunState
from cbench_server.storage.schema import metadata
from cbench_server.storage.sqlite import SqliteStore
from tests.storage.cells import cells_of, columns_of, flip

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]

COLUMNS = [(table.name, column.name) for table in metadata.sorted_tables for column in table.c]
SYSTEMS = ("a", "b")
LABELS = {"team": "red", "stage": "test"}
RUNS = ("r1", "r2", "r3")


@pytest.fixture
async def written(
    home: Path, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> Path:
    """A closed store: r1, the like of it as r2, and r3, which has the examples of r1."""
    store = SqliteStore.open(home)
    for run_id in RUNS:
        run = make_run(run_id, labels=LABELS, request_id=f"q-{run_id}", state=RunState.RUNNING)
        await store.create_run(run)
        if run_id == "r3":
            await store.share_examples("r1", "r3")
        else:
            examples = [make_example(n, text=f"{run_id} word {n}") for n in range(4)]
            await store.add_examples(run_id, examples, complete=True)
        rows = [
            make_row(n, system, failed=n == 2, processed={"answer": f"{run_id} {n}"}, reused=n == 1)
            for n in range(4)
            for system in SYSTEMS
        ]
        done = {"state": RunState.SUCCEEDED, "end_time": 150.5, "systems": SYSTEMS}
        await store.append(run_id, [RowScored(row) for row in rows], update=done)
    await store.close()
    return home / "cbench.db"


async def read_run(store: SqliteStore, run_id: str) -> list[Any]:
    """Read all that can be asked of a run."""
    found: list[Any] = [await store.get_run(run_id)]
    found.append(await store.find_request(f"q-{run_id}"))
    events: list[Stored] = []
    while page := await store.read_events(run_id, len(events), processed=True):
        events += page
    found.append(events)
    for query in (RowQuery(processed=True, original=True), RowQuery(failed_only=True)):
        found.append(await store.read_rows(run_id, query))
    found.append(await store.read_examples(run_id, 0, 100))
    found.append(await store.spooled(run_id))
    listed = [
        *await store.list_runs(states=[RunState.SUCCEEDED]),
        *await store.list_runs(labels=LABELS),
    ]
    found.append([run for run in listed if run.run_id == run_id])
    if any(run.damage for run in found[-1]) or len(found[-1]) != 2:
        raise DamagedRun(run_id, f"run {run_id} is not listed as it was")
    return found


async def check_runs(home: Path, expected: dict[str, list[Any]], sound: tuple[str, ...]) -> bool:
    """Read every run: what is read is true, sound runs are readable. Tell if damage was named."""
    try:
        store = SqliteStore.open(home)
    except StoreError:
        return True
    noticed = False
    try:
        listed = {run.run_id: run for run in await store.list_runs()}
        for run_id in RUNS:
            try:
                found = await read_run(store, run_id)
            except StoreError:
                assert run_id not in sound
                noticed = True
            except UnknownRun:
                assert run_id not in sound
                # Its name is what was damaged, which the list says.
                assert any(run.damage for run in listed.values())
                noticed = True
            else:
                assert found == expected[run_id]
        for run_id in sound:
            assert not listed[run_id].damage
        assert len(listed) == len(RUNS)
        return noticed
    finally:
        await store.close()


@pytest.fixture
async def expected(written: Path) -> dict[str, list[Any]]:
    store = SqliteStore.open(written.parent)
    found = {run_id: await read_run(store, run_id) for run_id in RUNS}
    await store.close()
    return found


def one_bit_apart(value: Any) -> Iterator[Any]:
    """Yield values that differ from one in a bit, or in being none."""
    if isinstance(value, float):
        bits = struct.unpack("<q", struct.pack("<d", value))[0]
        yield from (struct.unpack("<d", struct.pack("<q", bits ^ 1 << n))[0] for n in (0, 40, 62))
    elif isinstance(value, int):
        yield from (value ^ 1, value ^ 1 << 5, value ^ 1 << 33)
    elif isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        for place in {0, len(data) // 2, len(data) - 1} if data else ():
            changed = data[:place] + bytes([data[place] ^ 2]) + data[place + 1 :]
            yield changed.decode() if isinstance(value, str) else changed
    yield None if value is not None else 0


# A row of r1; for shared_examples, that of r3.
def rows_of(connection: sqlite3.Connection, table: str, column: str) -> list[tuple[int, Any]]:
    own = {"runs": "id = 1", "shared_examples": "run = 3"}.get(table, "run = 1")
    return connection.execute(f'SELECT rowid, "{column}" FROM {table} WHERE {own}').fetchall()


@pytest.mark.parametrize(("table", "column"), COLUMNS)
async def test_a_cell_that_is_set_to_another_value_is_noticed(
    written: Path, expected: dict[str, list[Any]], table: str, column: str
) -> None:
    connection = sqlite3.connect(written)
    cells = rows_of(connection, table, column)
    connection.close()
    chosen = random.Random(f"{table}.{column}").choice(cells)
    tried = 0
    for value in one_bit_apart(chosen[1]):
        connection = sqlite3.connect(written)
        statement = f'UPDATE {table} SET "{column}" = ? WHERE rowid = {chosen[0]}'
        try:
            connection.execute(statement, (value,))
        except sqlite3.IntegrityError:
            connection.close()
            continue
        connection.commit()
        tried += 1
        # An example of r1 is one of r3, too.
        sound = ("r1", "r2") if table == "shared_examples" else ("r2",)
        assert await check_runs(written.parent, expected, sound), f"{chosen[1]!r} -> {value!r}"
        rowid = value if column == "id" else chosen[0]
        connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE rowid = {rowid}', (chosen[1],))
        connection.commit()
        connection.close()
    assert tried


@pytest.mark.parametrize("table", [table.name for table in metadata.sorted_tables])
async def test_a_bit_flipped_on_the_disk_is_never_read_as_truth(
    written: Path, expected: dict[str, list[Any]], table: str
) -> None:
    whole = written.read_bytes()
    chance = random.Random(table)
    names = columns_of(written, table)
    cells = list(cells_of(written, table))
    own = cells if table == "shared_examples" else cells[: len(cells) // 2]
    noticed = tried = 0
    for place, name in enumerate(names):
        cell = chance.choice(own)
        (offset, length), kind_at = cell.columns[place], cell.types_at[place]
        offsets = [kind_at, *([offset, offset + length - 1] if length else [kind_at])]
        for each in offsets:
            flip(written, each, chance.randrange(8))
            noticed += await check_runs(written.parent, expected, ())
            tried += 1
            for leftover in written.parent.glob("cbench.db-*"):
                leftover.unlink()
            written.write_bytes(whole)
        assert noticed, name
    assert noticed > tried // 3  # What an index holds too is read from there, and is true.


@pytest.mark.parametrize("name", [b"r1", b"r\x801", b"\xff\xfe"])
@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_a_name_that_damage_made_is_listed_and_hides_no_other(
    written: Path, name: bytes, limit: int
) -> None:
    connection = sqlite3.connect(written)
    as_text = "?" if name == b"r1" else "CAST(? AS TEXT)"
    connection.execute(f"UPDATE runs SET run_id = {as_text} WHERE id = 2", (name,))
    connection.commit()
    connection.close()
    store = SqliteStore.open(written.parent)
    found: list[Run] = []
    before = None
    while True:
        page = await store.page_runs(limit=limit, before=before)
        found += page.runs
        before = page.next_before
        if before is None:
            break
    await store.close()
    assert sorted(run.run_id for run in found if not run.damage) == ["r1", "r3"]
    assert len(found) == 3
