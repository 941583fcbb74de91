"""Retention by age, count and bytes, quotas, and files that nothing needs."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cbench_server.daemon.housekeeping import clean, keep_house
from cbench_server.daemon.settings import Settings
from cbench_server.errors import LimitReached, StoreFull
from cbench_server.events import RowScored, StateChanged
from cbench_server.results import EvalRow
from cbench_server.runs.store import RetentionRule, SpooledExample
from cbench_server.spec import DatasetRef, Run, RunState
from cbench_server.storage.judge_checks import JudgeCheckStore
from cbench_server.storage.sql_store import SqlStore
from cbench_server.storage.sqlite import SqliteStore
from cbench_server.storage.uploads import STALE_SECONDS, UploadStore
from tests.fixtures import preloaded
from tests.fixtures.stores import Place

MakeRun = Callable[..., Run]
MakeRow = Callable[..., EvalRow]
MakeExample = Callable[..., SpooledExample]

CHILD = Path(__file__).with_name("child.py")
DONE = {"state": RunState.SUCCEEDED}


def ids(pruned: object) -> list[str]:
    return [each.run_id for each in pruned]  # type: ignore[attr-defined]


@pytest.fixture
async def runs(place: Place, make_run: MakeRun, make_row: MakeRow) -> SqlStore:
    """Five finished runs that ended at 100 ... 500, 200 kB each, and some that must stay."""
    store = place.open(clock=lambda: 1000.0)
    for number in range(1, 6):
        run_id = f"r{number}"
        await store.create_run(make_run(run_id, state=RunState.RUNNING))
        row = make_row(0, processed={"x": os.urandom(200_000)})
        await store.append(run_id, [RowScored(row)], update=DONE | {"end_time": number * 100.0})
    await store.create_run(make_run("pinned", end_time=1.0, **DONE))
    await store.pin("pinned")
    for state in (RunState.QUEUED, RunState.RUNNING, RunState.WAITING):
        await store.create_run(make_run(f"is-{state}", state=state, create_time=1.0))
    return store


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        (RetentionRule(), []),
        (RetentionRule(older_than=750.0), ["r1", "r2"]),
        (RetentionRule(keep=2), ["r1", "r2", "r3"]),
        (RetentionRule(keep=0), ["r1", "r2", "r3", "r4", "r5"]),
        (RetentionRule(max_bytes=800_000), ["r1", "r2"]),
        (RetentionRule(max_bytes=1), ["r1", "r2", "r3", "r4", "r5"]),
        (RetentionRule(older_than=850.0, keep=3, max_bytes=10**9), ["r1", "r2"]),
    ],
)
async def test_a_rule_lets_the_oldest_finished_runs_go(
    runs: SqlStore, rule: RetentionRule, gone: list[str]
) -> None:
    before = {run.run_id for run in await runs.list_runs()}
    told = await runs.prune(rule, dry_run=True)
    assert ids(told) == gone
    assert {run.run_id for run in await runs.list_runs()} == before
    assert await runs.prune(rule) == told
    assert {run.run_id for run in await runs.list_runs()} == before - set(gone)
    assert all(each.size > 200_000 for each in told)
    await runs.close()


@pytest.mark.parametrize(
    "damage", ["record = substr(record, 1, 40)", "state = 'failed'"], ids=["record", "head"]
)
async def test_a_run_whose_record_is_damaged_is_spared(
    runs: SqlStore, place: Place, damage: str
) -> None:
    place.sql(f"UPDATE runs SET {damage} WHERE run_id = 'r2'")
    assert ids(await runs.prune(RetentionRule(keep=0, max_bytes=1))) == ["r1", "r3", "r4", "r5"]
    await runs.close()


async def test_a_run_that_another_process_holds_is_spared(runs: SqlStore, place: Place) -> None:
    holder = preloaded.Popen(
        [sys.executable, CHILD, place.argument, "hold", "r1"], stdin=-1, stdout=-1, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    assert ids(await runs.prune(RetentionRule(keep=4))) == []
    holder.kill()
    holder.wait()
    async with asyncio.timeout(60):
        while not (gone := ids(await runs.prune(RetentionRule(keep=4)))):
            assert not place.is_sqlite  # The kernel drops a lock; a lease lapses.
            await asyncio.sleep(0.1)
    assert gone == ["r1"]
    await runs.close()


async def test_a_pin_lasts_and_can_be_taken_back(runs: SqlStore, place: Place) -> None:
    await runs.close()
    again = place.open(clock=lambda: 1000.0)
    assert "pinned" not in ids(await again.prune(RetentionRule(keep=0), dry_run=True))
    await again.pin("pinned", False)
    assert "pinned" in ids(await again.prune(RetentionRule(keep=0), dry_run=True))
    await again.close()


async def test_a_full_quota_refuses_what_grows_and_loses_nothing(
    place: Place, make_run: MakeRun, make_row: MakeRow, make_example: MakeExample
) -> None:
    store = place.open(max_bytes=600_000)
    await store.create_run(make_run())
    with pytest.raises(StoreFull, match=r"max_store_mb.*cbench runs prune") as refused:
        for n in range(20):
            await store.append("r1", [RowScored(make_row(n, processed={"x": os.urandom(50_000)}))])
    stored = (await store.get_run("r1")).completed_rows
    assert 5 < stored < 15
    for attempt in (
        store.create_run(make_run("r2")),
        store.add_examples("r1", [make_example(0)]),
    ):
        with pytest.raises(StoreFull, match=str(refused.value)[:40]):
            await attempt
    # A run can still say how it ended, be read, and be deleted.
    ended = StateChanged(RunState.WAITING, "the store is full")
    await store.append("r1", [ended], update={"state": RunState.FAILED})
    assert len((await store.read_rows("r1")).rows) == stored
    await store.delete_run("r1")
    assert (await store.create_run(make_run("r2"))).run_id == "r2"
    await store.close()


def test_uploads_have_quotas_that_say_what_to_do(home: Path) -> None:
    def upload(store: UploadStore, size: int) -> str:
        with store.writer() as writer:
            writer.add({"id": size, "data": os.urandom(size)})
            return writer.finish()

    with pytest.raises(LimitReached, match=r"larger than .* max_upload_mb .* raise max_upload_mb"):
        upload(UploadStore(home, max_upload_bytes=1000), 2000)
    both = UploadStore(home, max_upload_bytes=10_000, max_total_bytes=12_000)
    kept = upload(both, 8000)
    with pytest.raises(
        LimitReached, match=r"uploads take .* max_uploads_mb .*raise max_uploads_mb"
    ):
        upload(both, 5000)
    # Several at once are no way around it: who ends last is refused.
    with both.writer() as first, both.writer() as second:
        for writer in (first, second):
            writer.add({"id": 1, "data": os.urandom(2500)})
        also = first.finish()
        with pytest.raises(LimitReached, match="day after they were last used.* raise max_uploads"):
            second.finish()
    assert both.remove([also]) == []
    (home / "uploads" / f"{also}.examples").unlink()
    assert both.count(kept) == 1
    assert [path.name for path in (home / "uploads").iterdir()] == [f"{kept}.examples"]


async def test_an_upload_stays_while_a_run_names_it_and_a_day_after(
    home: Path, make_run: MakeRun
) -> None:
    uploads = UploadStore(home)
    digests = []
    for number in range(3):
        with uploads.writer() as writer:
            writer.add({"id": number})
            digests.append(writer.finish())
    long_ago = time.time() - STALE_SECONDS - 60
    for digest in digests[:2]:
        os.utime(home / "uploads" / f"{digest}.examples", (long_ago, long_ago))
    store = SqliteStore.open(home)
    run = make_run()
    spec = replace(run.spec, datasets=(DatasetRef("x", upload=digests[0]),))
    await store.create_run(replace(run, spec=spec))
    # Which uploads a damaged run names cannot be told.
    await store.create_run(make_run("damaged"))
    Place(home).sql("UPDATE runs SET record = substr(record, 1, 40) WHERE run_id = 'damaged'")
    assert await clean(store, uploads, home) == []
    await store.delete_run("damaged")
    assert await clean(store, uploads, home) == [f"uploads/{digests[1]}.examples"]
    await store.delete_run("r1")
    assert await clean(store, uploads, home) == [f"uploads/{digests[0]}.examples"]
    # Whoever asks for one keeps it for another day.
    path = home / "uploads" / f"{digests[2]}.examples"
    os.utime(path, (long_ago, long_ago))
    assert uploads.count(digests[2]) == 1
    assert await clean(store, uploads, home) == []
    await store.close()


async def test_what_killed_processes_leave_is_removed_and_what_the_living_write_is_not(
    home: Path,
) -> None:
    store, uploads = SqliteStore.open(home), UploadStore(home)
    (home / "judge-checks").mkdir()
    children = {
        what: preloaded.Popen(
            [sys.executable, CHILD, home, what, "r1"], stdin=-1, stdout=-1, text=True
        )
        for what in ("hold", "upload")
    }
    for child in children.values():
        assert child.stdout is not None
        assert child.stdout.readline() == "True\n"
    lock = home / "locks" / "r1.lock"
    [part] = (home / "uploads").iterdir()
    assert await clean(store, uploads, home) == []
    for child in children.values():
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert lock.exists()
    assert part.exists()
    left = home / "judge-checks" / ".new-x"
    left.write_bytes(b"{")
    removed = await clean(store, uploads, home)
    assert sorted(removed) == ["judge-checks/.new-x", "locks/r1.lock", f"uploads/{part.name}"]
    JudgeCheckStore(home).put("key", {"said": 1})
    assert JudgeCheckStore(home).get("key") == {"said": 1}
    await store.close()


async def test_a_lock_file_goes_with_its_lock(home: Path) -> None:
    store = SqliteStore.open(home)
    claim = await store.owners.acquire("r1")
    assert claim is not None
    assert await store.owners.acquire("r1") is None
    assert (home / "locks" / "r1.lock").exists()
    await store.owners.release(claim)
    assert list((home / "locks").iterdir()) == []
    await store.close()


async def test_a_daemon_tidies_up_at_its_start_and_again_and_again(
    tmp_path: Path, make_run: MakeRun
) -> None:
    store = SqliteStore.open(tmp_path)
    settings = Settings(retention_runs=1)
    keeping = asyncio.create_task(
        keep_house(store, UploadStore(tmp_path), tmp_path, settings, every_s=0.01)
    )
    for number in range(3):
        await store.create_run(make_run(f"r{number}", end_time=float(number), **DONE))
        while [run.run_id for run in await store.list_runs()] != [f"r{number}"]:
            assert not keeping.done()
            await asyncio.sleep(0.01)
    keeping.cancel()
    await asyncio.wait([keeping])
    await store.close()
