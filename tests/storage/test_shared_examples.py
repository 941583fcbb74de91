"""Examples that runs share: stored once, read by each, kept until the last of them is deleted."""

from collections.abc import Callable
from contextlib import closing

import pytest

from cbench_server.errors import StoreCorrupt, UnknownRun
from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.runs.store import RowKey, RowQuery, SpooledExample
from cbench_server.spec import Run
from cbench_server.storage.deletion import delete_some
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.transaction import Transaction
from tests.fixtures.stores import Place

from .test_delete import counts

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]
Family = list[SpooledExample]

SIZE = 40


@pytest.fixture
async def family(
    store: SqlStore, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> Family:
    """Three runs with a row each and the examples of the first, the third by way of the second."""
    examples = [make_example(ordinal) for ordinal in range(SIZE)]
    for run_id in ("r1", "r2", "r3"):
        await store.create_run(make_run(run_id))
        processed = {"context": "context 3", "response": run_id}
        row = make_row(3, processed=processed, carried=("context",))
        await store.append(run_id, [RowScored(row)], update={"systems": ("a",)})
    await store.add_examples("r1", examples, complete=True)
    assert await store.share_examples("r1", "r2")
    assert await store.share_examples("r2", "r3")
    return examples


async def assert_readable(store: SqlStore, run_id: str, examples: Family) -> None:
    """Read a run's examples in every way there is."""
    assert await store.spooled(run_id) == (SIZE, True)
    assert await store.read_examples(run_id, 0, 1000) == examples
    assert await store.example_digests(run_id, 2) == [each.digest for each in examples[:2]]
    processed = {"context": "context 3", "response": run_id}
    page = await store.read_rows(run_id, RowQuery(processed=True, original=True))
    assert page.originals == [examples[3].example]
    (event,) = await store.read_events(run_id, 1, processed=True)
    assert isinstance(event.event, RowScored)
    (found,) = await store.read_rows_at([RowKey(run_id, 3, "a", 0)])
    assert found is not None
    assert page.rows[0].processed == event.event.row.processed == found.processed == processed


async def test_shared_examples_are_read_like_own_ones_and_stored_once(
    store: SqlStore, place: Place, family: Family
) -> None:
    for run_id in ("r1", "r2", "r3"):
        await assert_readable(store, run_id, family)
    assert counts(place)["examples"] == SIZE


@pytest.mark.parametrize("order", ["123", "132", "213", "231", "312", "321"])
async def test_they_stay_until_the_last_run_that_has_them_is_deleted(
    store: SqlStore, place: Place, family: Family, order: str
) -> None:
    left = ["r1", "r2", "r3"]
    for number in order:
        left.remove(f"r{number}")
        await store.delete_run(f"r{number}")
        with pytest.raises(UnknownRun):
            await store.get_run(f"r{number}")
        assert [run.run_id for run in await store.list_runs()] == left[::-1]
        for run_id in left:
            await assert_readable(store, run_id, family)
        found = counts(place)
        assert (found["events"], found["run_systems"]) == (2 * len(left), len(left))
        assert found["examples"] == (SIZE if left else 0)
    assert set(counts(place).values()) == {0}
    assert shared(place) == []


async def test_a_deleted_run_whose_examples_stay_is_not_deleted_again_and_again(
    store: SqlStore, make_run: MakeRun, family: Family
) -> None:
    await store.delete_run("r1")
    assert await store.finish_deletions() == []
    await store.create_run(make_run("r4"))
    with pytest.raises(UnknownRun):
        await store.share_examples("r1", "r4")
    assert await store.share_examples("r2", "r4")
    assert await store.read_examples("r4", 0, 1000) == family


@pytest.mark.parametrize("stopped_at", ["begun", "first part", "sharers gone"])
async def test_a_deletion_that_was_cut_off_is_finished_later(
    place: Place, store: SqlStore, family: Family, stopped_at: str
) -> None:
    if stopped_at == "sharers gone":
        await store.delete_run("r1")
    await store.close()
    with closing(place.connect()) as connection:
        connection.begin_writing()
        transaction = Transaction(connection, careful=False)
        if stopped_at == "sharers gone":
            for run_id in ("r2", "r3"):
                key = transaction.mark_deleted(run_id)
                while key is not None and key != 1:
                    key = delete_some(connection, key)
            assert key == 1  # The owner, which a process that is killed here does not get to.
        else:
            assert transaction.mark_deleted("r1") == 1
            if stopped_at == "first part":
                delete_some(connection, 1)
        connection.commit()
    again = place.open()
    finished = await again.finish_deletions()
    if stopped_at == "sharers gone":
        assert (finished, set(counts(place).values())) == (["r1"], {0})
    else:
        assert finished == (["r1"] if stopped_at == "begun" else [])
        assert counts(place)["events"] == 4
        await assert_readable(again, "r2", family)
    await again.close()


async def test_a_run_that_has_not_got_all_its_examples_shares_none(
    store: SqlStore, make_run: MakeRun, make_example: MakeExample
) -> None:
    for run_id in ("r1", "r2"):
        await store.create_run(make_run(run_id))
    await store.add_examples("r1", [make_example(0)])
    assert not await store.share_examples("r1", "r2")
    assert await store.spooled("r2") == (0, False)


async def test_a_run_with_examples_of_its_own_keeps_them(
    store: SqlStore, make_run: MakeRun, make_example: MakeExample
) -> None:
    for run_id in ("r1", "r2"):
        await store.create_run(make_run(run_id))
        await store.add_examples(run_id, [make_example(0, of=run_id)], complete=True)
    assert not await store.share_examples("r1", "r2")
    (kept,) = await store.read_examples("r2", 0, 10)
    assert kept.example["of"] == "r2"


async def test_shared_examples_can_be_copied(
    store: SqlStore, make_run: MakeRun, family: Family
) -> None:
    await store.create_run(make_run("r4"))
    assert await store.copy_examples("r3", "r4", 0, 1000) == SIZE
    assert await store.read_examples("r4", 0, 1000) == family


async def test_a_changed_note_of_whose_examples_they_are_is_noticed(
    place: Place, store: SqlStore, make_run: MakeRun, make_example: MakeExample, family: Family
) -> None:
    await store.create_run(make_run("other"))
    await store.add_examples("other", [make_example(n, text="?") for n in range(SIZE)])
    place.sql("UPDATE shared_examples SET owner = 4 WHERE run = 2")
    with pytest.raises(StoreCorrupt, match='owner of the examples of run "r2" is damaged'):
        await store.read_examples("r2", 0, 10)
    with pytest.raises(StoreCorrupt, match='owner of the examples of run "r2" is damaged'):
        await store.read_rows("r2", RowQuery(original=True))


def shared(place: Place) -> list[tuple[int, int]]:
    return place.sql("SELECT run, owner FROM shared_examples")


async def test_a_damaged_run_that_others_need_is_hidden_like_any_other(
    place: Place, store: SqlStore, family: Family
) -> None:
    place.sql("UPDATE runs SET last_seq = 99 WHERE id = 1")
    assert [run.run_id for run in await store.list_runs() if run.damage] == ["r1"]
    await store.delete_run("r1")
    assert [run.run_id for run in await store.list_runs()] == ["r3", "r2"]
    assert await store.read_examples("r2", 0, 100) == family
    assert await store.uploads_in_use() is not None
