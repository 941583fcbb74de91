"""Rows in the run's order, page by page."""

import base64
from collections.abc import Callable

import msgspec
import pytest

from cbench_server.errors import InvalidInput, StoreCorrupt
from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowQuery, SpooledExample
from cbench_server.spec import Run
from cbench_server.storage.sql_store import SqlStore

MakeRow = Callable[..., EvalRow]
Key = tuple[str, int, int]


@pytest.fixture
async def filled(
    store: SqlStore,
    make_run: Callable[..., Run],
    make_row: MakeRow,
    make_example: Callable[..., SpooledExample],
) -> SqlStore:
    """A run of systems b and a, in that order, with three examples and two repeats."""
    await store.create_run(make_run())
    await store.append("r1", [], update={"systems": ("b", "a")})
    await store.add_examples("r1", [make_example(n) for n in range(3)], complete=True)
    rows = [
        make_row(ordinal, system, repeat=repeat, failed=ordinal == 1, processed={"n": ordinal})
        for ordinal in (2, 0, 1)
        for system in ("a", "b")
        for repeat in (1, 0)
    ]
    await store.append("r1", [RowScored(row) for row in rows])
    return store


ORDER = [(system, ordinal, repeat) for system in "ba" for ordinal in range(3) for repeat in (0, 1)]


def key(row: EvalRow) -> Key:
    return row.system, row.ordinal, row.repeat


@pytest.mark.parametrize("limit", [1, 5, 6, 12, 100])
async def test_pages_give_every_row_once_in_order(filled: SqlStore, limit: int) -> None:
    keys: list[Key] = []
    token = None
    while True:
        page = await filled.read_rows("r1", RowQuery(limit=limit), token)
        assert 0 < len(page.rows) <= limit
        keys += map(key, page.rows)
        token = page.next_token
        if token is None:
            break
    assert keys == ORDER


async def test_rows_are_filtered_by_system_and_failure(filled: SqlStore) -> None:
    page = await filled.read_rows("r1", RowQuery(system="a", failed_only=True))
    assert [key(row) for row in page.rows] == [("a", 1, 0), ("a", 1, 1)]
    assert (await filled.read_rows("r1", RowQuery(system="unknown"))).rows == []


async def test_a_page_is_bounded_by_bytes_of_outputs_and_originals(filled: SqlStore) -> None:
    page = await filled.read_rows("r1", RowQuery(max_bytes=1, processed=True, original=True))
    assert len(page.rows) == 1
    assert page.next_token


async def test_originals_and_outputs_come_when_asked_for(filled: SqlStore) -> None:
    page = await filled.read_rows("r1", RowQuery(processed=True, original=True))
    assert page.originals is not None
    assert [original["id"] for original in page.originals] == [row.ordinal for row in page.rows]
    assert [row.processed for row in page.rows] == [{"n": row.ordinal} for row in page.rows]
    assert (await filled.read_rows("r1")).originals is None


async def test_an_original_that_is_gone_is_noticed(filled: SqlStore, make_row: MakeRow) -> None:
    await filled.append("r1", [RowScored(make_row(7))])
    with pytest.raises(StoreCorrupt, match="example 7"):
        await filled.read_rows("r1", RowQuery(original=True))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "garbage!",
        "AAAA",
        "é",
        base64.urlsafe_b64encode(msgspec.msgpack.encode((1, 15, 0, 2**63, 0, 0))).decode(),
        base64.urlsafe_b64encode(msgspec.msgpack.encode((1, 15, 9, 0, 0, 0))).decode(),
        base64.urlsafe_b64encode(msgspec.msgpack.encode((2, 15, 0, 0, 0, 0))).decode(),
        base64.urlsafe_b64encode(msgspec.msgpack.encode((1, 15, 0, -5, 0, 0))).decode(),
    ],
    ids=["empty", "letters", "short", "accent", "huge", "system", "other-run", "negative"],
)
async def test_a_token_we_did_not_give_is_refused(filled: SqlStore, token: str) -> None:
    with pytest.raises(InvalidInput, match="token"):
        await filled.read_rows("r1", token=token)


async def test_rows_of_a_system_are_iterated_without_outputs(filled: SqlStore) -> None:
    rows = [row async for page in filled.iterate_rows("r1", "b") for row in page]
    assert [key(row) for row in rows] == ORDER[:6]
    assert all(row.processed is None for row in rows)


async def test_completed_names_the_stored_keys_of_a_range(filled: SqlStore) -> None:
    assert await filled.completed("r1", "a", 1, 3) == {(1, 0), (1, 1), (2, 0), (2, 1)}
    assert await filled.completed("r1", "nobody", 0, 9) == set()


async def test_outputs_move_to_another_run_as_they_are_stored(
    store: SqlStore,
    make_run: Callable[..., Run],
    make_row: MakeRow,
    make_example: Callable[..., SpooledExample],
) -> None:
    carrying = {"context": "context 0", "response": "short"}
    rows = [
        make_row(0, processed=carrying, carried=("context",)),
        make_row(1, processed={"response": "long " * 2000}),
        make_row(2, failed=True),
        make_row(3, processed={}),
    ]
    await store.create_run(make_run())
    await store.add_examples("r1", [make_example(n) for n in range(4)], complete=True)
    await store.append("r1", [RowScored(row) for row in rows], update={"systems": ("a",)})
    query = RowQuery(processed=True, packed=True)
    page = await store.read_rows("r1", query)
    assert page.packed is not None
    await store.create_run(make_run("r2"))
    assert await store.share_examples("r1", "r2")
    moved = [RowScored(row, packed) for row, packed in zip(page.rows, page.packed, strict=True)]
    await store.append("r2", moved, update={"systems": ("a",)})
    again = await store.read_rows("r2", query)
    assert again == page
    assert [row.processed for row in again.rows] == [row.processed for row in rows]
