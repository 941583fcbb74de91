"""Ends of runs: each has one, which tells what is stored, whatever else cannot be told."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from cbench_server.events import RunFinished
from cbench_server.runs.attending import perform_intents
from cbench_server.runs.intents import Answer
from cbench_server.spec import DatasetRef, Run, RunSpec, RunState, SystemRef
from cbench_server.storage.uploads import UploadStore
from tests.e2e.processes import DaemonProcess, examples, wait_until
from tests.fixtures.priced_model import PRICE, priced_model

from .test_life import Daemon


async def is_so(daemon: Daemon, run_id: str, condition: Callable[[Run], bool]) -> None:
    while not condition(await daemon.store.get_run(run_id)):
        await asyncio.sleep(0.01)


class Held:
    """A run at a daemon, whose store can be kept from being written to."""

    def __init__(self, home: Path) -> None:
        self.daemon = Daemon(home, lambda: 1.0)
        with UploadStore(home).writer() as upload:
            for example in examples(6):
                upload.add(example)
            given = DatasetRef("given", upload=upload.finish())
        spec = RunSpec((SystemRef(builtin="gated"),), (given,), timed_rows=0)
        self.run_id = self.daemon.run(self.daemon.orchestrator.start(spec)).run_id
        self.daemon.run(is_so(self.daemon, self.run_id, lambda run: run.total_rows == 6))
        self._lock = sqlite3.connect(home / "cbench.db", isolation_level=None)

    @property
    def run(self) -> Run:
        return self.daemon.run(self.daemon.store.get_run(self.run_id))

    def _is_writing(self) -> bool:
        return bool(self.daemon.store.writer.unfinished_size)

    async def cancelled_in(
        self, doing: Coroutine[Any, Any, Any], is_begun: Callable[[], bool] | None = None
    ) -> None:
        """Cancel the run while what is done waits for its commit, and let both go on."""
        self._lock.execute("BEGIN IMMEDIATE")
        done = asyncio.create_task(doing)
        while not (is_begun or self._is_writing)():
            await asyncio.sleep(0.01)
        cancelling = asyncio.create_task(self.daemon.orchestrator.cancel(self.run_id))
        # Time to decide on the end, for one that does not wait for the commit.
        await asyncio.wait([cancelling], timeout=0.5)
        self._lock.execute("ROLLBACK")
        await asyncio.gather(done, cancelling)

    def close(self) -> None:
        self._lock.close()
        self.daemon.end()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    made = Held(tmp_path)
    yield made
    made.close()


def test_the_end_of_a_cancelled_run_tells_of_the_rows_that_were_just_being_stored(
    held: Held,
) -> None:
    async def answer() -> None:
        held.daemon.system.gate.release()

    held.daemon.run(held.cancelled_in(answer()))
    over, store = held.run, held.daemon.store
    told = held.daemon.run(store.read_events(held.run_id, over.last_seq - 1))[-1].event
    assert (over.state, over.completed_rows) == (RunState.CANCELLED, 1)
    assert over.summary["gated"]["num_scored"] == 1
    assert told == RunFinished(over)


def test_a_run_that_is_cancelled_while_it_is_handed_back_is_cancelled(held: Held) -> None:
    held.daemon.run(held.cancelled_in(held.daemon.orchestrator.drain(0.0)))
    assert held.run.state is RunState.CANCELLED


def test_what_is_told_of_a_system_as_the_run_ends_is_not_lost(held: Held) -> None:
    telling = held.daemon.orchestrator.explain_wait(held.run_id, "It fell over.")
    soon = time.monotonic() + 0.5  # What changes no rows has no size by which it could be seen.
    held.daemon.run(held.cancelled_in(telling, lambda: time.monotonic() > soon))
    assert held.run.state is RunState.CANCELLED
    assert "It fell over." in [note.text for note in held.run.notes]


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "at its end"])
def test_a_run_whose_cost_cannot_be_read_has_an_end_that_says_so(
    daemon: DaemonProcess, client: BenchClient, is_cancelled: bool
) -> None:
    go_on = threading.Event()

    def hold(number: int, _: Any) -> None:
        if number > 4:
            go_on.wait()

    with priced_model() as model:
        model.before = hold
        proxy = {"base_url": model.url, "model": "m", "price": PRICE}
        system = {"name": "priced", "proxy": proxy}
        run_id = client.start(
            {"systems": [system], "datasets": [{"name": "mini-qa"}], "timed_rows": 0}
        )
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 4)
        with sqlite3.connect(daemon.home / "cbench.db") as store:
            store.execute("UPDATE events SET head = x'80' WHERE seq = 4")
        store.close()
        if is_cancelled:
            assert client.cancel(run_id).state == 4
        go_on.set()
        wait_until(lambda: client.get(run_id).state == 4)
    # Nobody owns it any more, and whoever watches it is told.
    wait_until(lambda: not list((daemon.home / "locks").glob("2*")))
    failure = client.get(run_id).failure
    assert failure.reason == "CANNOT_SUMMARIZE"
    assert "event 4" in failure.message
    *_, last = client.watch(run_id, after=5)
    assert last.finished.state == 4


def test_what_was_asked_before_the_end_is_not_done_after_a_resume(held: Held) -> None:
    """Who had cancelled it died before it could say so."""
    daemon, run_id = held.daemon, held.run_id
    daemon.run(daemon.orchestrator.cancel(run_id))
    asked = daemon.run(daemon.store.intents.ask(run_id, "cancel", {}))
    daemon.run(daemon.orchestrator.resume(run_id))
    daemon.run(perform_intents(daemon.orchestrator, may_take=True))
    assert not held.run.state.is_final
    assert daemon.run(daemon.store.intents.answer_to(asked)) == Answer()
