"""The tables of a run's life: complete, and what the store holds owners to."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cbench_server.errors import LostClaim, WrongState
from cbench_server.events import RunFinished, StateChanged
from cbench_server.runs.lifecycle import (
    FINAL,
    OPEN,
    REQUESTS,
    TRANSITIONS,
    Owner,
    Reply,
    is_transition,
    reply_to,
)
from cbench_server.runs.owned_store import OwnedStore
from cbench_server.runs.ownership import Claim
from cbench_server.spec import Run, RunSpec, RunState
from cbench_server.storage.sqlite import SqliteStore

STATES = tuple(RunState)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore.open(tmp_path)
    yield opened
    await opened.close()


async def claimed(store: SqliteStore, state: RunState = RunState.QUEUED) -> tuple[Run, Claim]:
    run = Run("r1", RunSpec((), ()), state, 1.0)
    claim = await store.owners.acquire("r1")
    assert claim is not None
    return await store.create_run(run), claim


@pytest.mark.parametrize("request_name", REQUESTS)
def test_every_request_has_one_answer_in_every_situation(request_name: str) -> None:
    for state in STATES:
        for owner in Owner:
            assert isinstance(reply_to(request_name, state, owner), Reply)


def test_every_state_is_entered_and_every_open_one_left() -> None:
    assert {each.after for each in TRANSITIONS} == {*STATES, None}
    assert {state for each in TRANSITIONS for state in each.before} == set(STATES)
    for state in OPEN:
        assert all(is_transition(state, end) for end in FINAL if end is not RunState.SUCCEEDED)
    for end in FINAL:
        entered = {each.event for each in TRANSITIONS if each.after is end}
        assert entered == {"finished"}
        assert not is_transition(RunState.SUCCEEDED, end)


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
async def test_the_store_takes_no_other_change_of_state(
    store: SqliteStore, before: RunState, after: RunState
) -> None:
    run, claim = await claimed(store, before)
    events: list[Any] = [RunFinished(run) if after.is_final else StateChanged(after)]
    changing = store.append("r1", events, update={"state": after}, claim=claim)
    if is_transition(before, after):
        await changing
        assert (await store.get_run("r1")).state is after
    else:
        with pytest.raises(WrongState, match=f"is {before} and cannot become {after}"):
            await changing
        assert (await store.get_run("r1")).last_seq == run.last_seq


async def test_nothing_is_added_to_a_run_that_is_over(store: SqliteStore) -> None:
    _, claim = await claimed(store, RunState.SUCCEEDED)
    with pytest.raises(WrongState, match="nothing can be added"):
        await store.append("r1", [StateChanged(RunState.RUNNING)], claim=claim)


async def test_what_a_former_owner_commits_changes_nothing(store: SqliteStore) -> None:
    run, first = await claimed(store)
    owned = OwnedStore(store, first)
    await store.owners.release(first)
    second = await store.owners.acquire("r1")
    assert second is not None
    assert second.epoch > first.epoch
    change = {"state": RunState.RUNNING}
    for commit in (
        lambda: owned.append("r1", [StateChanged(RunState.RUNNING)], update=change),
        lambda: owned.add_examples("r1", [], complete=True),
        lambda: owned.share_examples("r1", "r1"),
        lambda: owned.copy_examples("r1", "r1", 0, 1),
        lambda: owned.delete_run("r1"),
    ):
        with pytest.raises(LostClaim, match=f"epoch {first.epoch} "):
            await commit()
    assert await store.get_run("r1") == run
    assert not await store.owners.renew(first)
    await store.owners.release(first)
    assert await store.owners.renew(second)


async def test_who_loses_the_file_of_a_claim_has_lost_the_claim(
    store: SqliteStore, tmp_path: Path
) -> None:
    _, first = await claimed(store)
    (tmp_path / "locks" / "r1.lock").unlink()
    assert not await store.owners.renew(first)
    with pytest.raises(LostClaim):
        await store.append("r1", [StateChanged(RunState.RUNNING)], claim=first)
