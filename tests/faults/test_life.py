"""A run's life, which Hypothesis plays against the real orchestrator and store.

A death of the daemon is played by never going on with its event loop, and by closing the files
of its claims, as the kernel would; test_recovery.py does it with processes.
"""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from cbench_server.errors import CbenchError, ComponentAway, WrongState
from cbench_server.events import (
    RowScored,
    RunAccepted,
    RunFinished,
    StateChanged,
    StoredEvent,
)
from cbench_server.registry import Registry, shipped_and_installed
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.credentials import Credentials
from cbench_server.rpc.evaluator_factory import EvaluatorMaker
from cbench_server.rpc.finder import Finder
from cbench_server.runs.lifecycle import OPEN, TRANSITIONS, is_transition
from cbench_server.runs.orchestrator import Orchestrator
from cbench_server.runs.run_turns import Limits
from cbench_server.runs.services import Services
from cbench_server.scoring.placement import Scoring
from cbench_server.spec import DatasetRef, EvaluatorRef, RunSpec, RunState, SystemRef
from cbench_server.storage.sqlite import SqliteStore
from cbench_server.storage.uploads import UploadStore
from cbench_server.types import Assessment
from tests.e2e.processes import examples

EXAMPLES = 6
DEADLINE_S = 120
MAX_EXAMPLES = int(os.environ.get("CBENCH_LIFE_EXAMPLES", "6"))

# Event loops of daemons that died, kept so that nothing of them is ever finished.
_dead: list[Any] = []


class Gated:
    """A system that answers as often as it is let."""

    name = "gated"
    version = "1"
    max_concurrency = 2

    def __init__(self) -> None:
        self.gate = asyncio.Semaphore(0)

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        await self.gate.acquire()
        return {**example, "response": example["question"]}


class Peers:
    """Whether those that a run needs are there; they outlive daemons."""

    def __init__(self) -> None:
        self.is_answering = False
        self.is_there = False


class Silent:
    """A system that is there, and says nothing until it is mended."""

    name = "silent"
    version = "1"
    max_concurrency = 2

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        while not self._peers.is_answering:
            await asyncio.sleep(0.02)
        return {**example, "response": example["question"]}


class Quick(Gated):
    """Answers at once."""

    name = "quick"

    async def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": example["question"]}


class Fickle:
    """An evaluator that is away until it is back."""

    name = "fickle"
    version = "1"
    scores = ("fickle",)
    placement = "io"

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        raise NotImplementedError

    async def assess(self, original: dict[str, Any], processed: dict[str, Any]) -> Assessment:
        if not self._peers.is_there:
            raise ComponentAway("nobody is there.")
        return Assessment({"fickle": 1.0})


class Daemon:
    """An orchestrator with its store, on an event loop of its own."""

    def __init__(self, home: Path, clock: Any, peers: Peers | None = None) -> None:
        self.loop = asyncio.new_event_loop()
        self.system = Gated()
        self.peers = peers or Peers()
        self.run(self._open(home, clock))

    async def _open(self, home: Path, clock: Any) -> None:
        registry = Registry(shipped_and_installed)
        registry.register("system", "gated", lambda: self.system)
        registry.register("system", "quick", Quick)
        registry.register("system", "silent", lambda: Silent(self.peers))
        registry.register("evaluator", "fickle", lambda: Fickle(self.peers))
        self.store = SqliteStore.open(home, clock)
        self.scoring = Scoring()
        credentials = Credentials({}, "")
        finder = Finder(registry, Attachments(), credentials, EvaluatorMaker(registry, credentials))
        uploads = UploadStore(home)
        services = Services(self.store, registry, self.scoring, finder, uploads, clock)
        self.orchestrator = Orchestrator(services, Limits(max_runs=2, max_queued=2))

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, DEADLINE_S))

    def die(self) -> None:
        held = [descriptor for _, descriptor in self.store.locks._held.values()]
        # What it has not committed by now is refused, as the dead write nothing.
        self.store.locks._held.clear()
        self.store.writer.close()
        for descriptor in held:
            os.close(descriptor)
        _dead.append(self)

    def end(self) -> None:
        self.run(self.orchestrator.drain(0.0))
        self.run(self.scoring.close())
        self.run(self.store.close())
        self.loop.close()


async def tolerated(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except CbenchError as error:
        return error


_STEPS = {
    RunState.RUNNING: "run",
    RunState.WAITING: "wait",
    RunState.SUCCEEDED: "finish",
    RunState.FAILED: "fail",
    RunState.CANCELLED: "cancel",
}
_TO_THE_QUEUE = {
    "the daemon shuts down": "hand back",
    "recovered": "recover",
    "resumed": "resume",
}


def step_named(event: StoredEvent, after: RunState) -> str:
    """Return which transition led to a state."""
    if isinstance(event, StateChanged) and after is RunState.QUEUED:
        return _TO_THE_QUEUE[event.reason]
    return _STEPS[after]


def rows_summarized(figures: Mapping[str, float]) -> float:
    kinds = ("num_scored", "num_unscored", "num_failed", "num_not_applicable")
    return sum(figures[kind] for kind in kinds)


class Life(RuleBasedStateMachine):
    """Daemons that come and go, and requests that meet."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="cbench-life-"))
        self.now = 1_000_000.0
        self.peers = Peers()
        self.daemon = Daemon(self.home, self.clock, self.peers)
        with UploadStore(self.home).writer() as upload:
            for example in examples(EXAMPLES):
                upload.add(example)
            self.upload = upload.finish()
        self.runs: list[str] = []
        self.deleted: set[str] = set()
        self.steps: set[str] = set()
        """The transitions that were seen, by name."""

    def clock(self) -> float:
        return self.now

    def chosen(self, number: int) -> str:
        return self.runs[number % len(self.runs)]

    def together(self, *work: Coroutine[Any, Any, Any]) -> list[Any]:
        async def all_of_it() -> list[Any]:
            return await asyncio.gather(*map(tolerated, work))

        found: list[Any] = self.daemon.run(all_of_it())
        return found

    def spec(self, need: str = "gated") -> RunSpec:
        dataset = DatasetRef(name="given", upload=self.upload)
        system = SystemRef(builtin="quick" if need == "fickle" else need)
        spec = RunSpec((system,), (dataset,), timed_rows=0)
        if need == "silent":
            return replace(spec, row_timeout=0.05, wait_timeout=0.2)
        if need == "fickle":
            return replace(spec, evaluators=(EvaluatorRef("fickle"),), wait_timeout=2.5)
        return spec

    @rule(
        copies=st.integers(1, 3),
        need=st.sampled_from(["gated", "gated", "silent", "fickle"]),
    )
    def start(self, copies: int, need: str = "gated") -> None:
        orchestrator, spec = self.daemon.orchestrator, self.spec(need)
        name = f"request {len(self.runs)}"
        made = self.together(*[orchestrator.start(spec, name) for _ in range(copies)])
        ids = {run.run_id for run in made if not isinstance(run, CbenchError)}
        assert len(ids) <= 1, made
        self.runs += ids - set(self.runs)

    @initialize()
    def begin(self) -> None:
        self.start(1)

    @rule(calls=st.integers(1, 2 * EXAMPLES))
    def answer(self, calls: int) -> None:
        """Let the system answer, and everything that follows from it happen."""
        for _ in range(calls):
            self.daemon.system.gate.release()

        async def settle() -> None:
            before = -1
            while (now := await self.last_seqs()) != before:
                before = now
                await asyncio.sleep(0.02)

        self.daemon.run(settle())

    @rule(is_answering=st.booleans(), is_there=st.booleans())
    def change(self, is_answering: bool, is_there: bool) -> None:
        """Mend what runs need, or take it away, and let them notice."""
        self.peers.is_answering, self.peers.is_there = is_answering, is_there
        self.daemon.run(self.rest({RunState.QUEUED, *(() if is_there else (RunState.WAITING,))}))

    async def rest(self, done: set[RunState]) -> None:
        """Wait until every run is over, or in such a state, or at the gate."""
        ends_at = time.monotonic() + 5
        while time.monotonic() < ends_at:
            runs = await self.daemon.store.list_runs(states=OPEN)
            if all(run.systems == ("gated",) or run.state in done for run in runs):
                return
            await asyncio.sleep(0.02)

    async def last_seqs(self) -> int:
        return sum(run.last_seq for run in await self.daemon.store.list_runs())

    @rule(number=st.integers(0, 9), cancels=st.integers(1, 3), resumes=st.integers(0, 2))
    def cancel(self, number: int, cancels: int, resumes: int) -> None:
        run_id, orchestrator = self.chosen(number), self.daemon.orchestrator
        self.together(
            *[orchestrator.cancel(run_id) for _ in range(cancels)],
            *[orchestrator.resume(run_id) for _ in range(resumes)],
        )
        if not resumes and run_id not in self.deleted:
            assert self.daemon.run(self.daemon.store.get_run(run_id)).state.is_final

    @rule(number=st.integers(0, 9), copies=st.integers(1, 3))
    def resume(self, number: int, copies: int) -> None:
        run_id, orchestrator = self.chosen(number), self.daemon.orchestrator
        before = self.together(self.daemon.store.get_run(run_id))[0]
        replies = self.together(*[orchestrator.resume(run_id) for _ in range(copies)])
        if run_id in self.deleted:
            return
        refused = [reply for reply in replies if isinstance(reply, CbenchError)]
        if before.state is RunState.SUCCEEDED:
            assert len(refused) == copies, replies
        # A run whose last answers were let go may come to its end between two of the requests.
        after = self.together(self.daemon.store.get_run(run_id))[0]
        for reply in refused:
            assert isinstance(reply, WrongState), replies
            assert after.state is RunState.SUCCEEDED, replies

    @rule(number=st.integers(0, 9), copies=st.integers(1, 2))
    def delete(self, number: int, copies: int) -> None:
        run_id, orchestrator = self.chosen(number), self.daemon.orchestrator
        replies = self.together(*[orchestrator.delete(run_id) for _ in range(copies)])
        if True in replies:
            self.deleted.add(run_id)
            self.steps.add("delete")

    @rule(number=st.integers(0, 9))
    def rescore(self, number: int) -> None:
        (made,) = self.together(self.daemon.orchestrator.rescore(self.chosen(number)))
        if not isinstance(made, CbenchError):
            self.runs.append(made.run_id)

    @rule(
        what=st.sampled_from(["start", "cancel", "resume", "delete", "rescore"]),
        number=st.integers(0, 9),
        moments=st.integers(1, 40),
    )
    def leave(self, what: str, number: int, moments: int) -> None:
        """Ask for something, and be gone before it is done."""
        orchestrator, run_id = self.daemon.orchestrator, self.chosen(number)
        asked = self.spec() if what == "start" else run_id
        work = getattr(orchestrator, what)(asked)

        async def be_gone() -> None:
            task = asyncio.create_task(tolerated(work))
            for _ in range(moments):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            await orchestrator._unbroken.all_done(DEADLINE_S)

        self.daemon.run(be_gone())
        # What was stored of it is known to nobody but the store.
        listed = [run.run_id for run in self.daemon.run(self.daemon.store.list_runs())]
        self.deleted |= set(self.runs) - set(listed)
        self.runs += sorted(set(listed) - set(self.runs))

    @rule(seconds=st.sampled_from([-3600.0, -1.0, 0.5, 7200.0]))
    def jump(self, seconds: float) -> None:
        """Put the clock forward or back."""
        self.now += seconds

    @rule()
    def die(self) -> None:
        self.daemon.die()
        self.daemon = Daemon(self.home, self.clock, self.peers)
        self.daemon.run(self.daemon.orchestrator.recover())

    @rule()
    def drain(self) -> None:
        self.daemon.end()
        self.daemon = Daemon(self.home, self.clock, self.peers)
        self.daemon.run(self.daemon.orchestrator.recover())

    @rule(number=st.integers(0, 9), tenths=st.integers(0, 60))
    def cancel_beside_the_end(self, number: int, tenths: int) -> None:
        """Ask for a cancel while the daemon hands its runs back, so many tenths of a ms later."""
        run_id, orchestrator = self.chosen(number), self.daemon.orchestrator

        async def both() -> Any:
            ending = asyncio.create_task(orchestrator.drain(0.0))
            await asyncio.sleep(tenths / 10_000)
            reply = await tolerated(orchestrator.cancel(run_id))
            await ending
            return reply

        reply = self.daemon.run(both())
        assert run_id in self.deleted or reply.state.is_final
        self.drain()

    @invariant()
    def every_run_is_sound(self) -> None:
        store = self.daemon.store
        for run_id in self.runs:
            if run_id not in self.deleted:
                events = self.daemon.run(store.read_events(run_id, 0))
                self.check(self.daemon.run(store.get_run(run_id)), events)
        listed = self.daemon.run(store.list_runs())
        assert {run.run_id for run in listed} == set(self.runs) - self.deleted
        # Nobody would ever go on with an open run that is not owned. It may have ended since.
        unowned = {run.run_id for run in listed if not run.state.is_final}
        for run_id in unowned - self.daemon.orchestrator._live.keys():
            assert self.daemon.run(store.get_run(run_id)).state.is_final, run_id

    def check(self, run: Any, events: list[Any]) -> None:
        assert [event.seq for event in events] == [*range(1, len(events) + 1)]
        assert isinstance(events[0].event, RunAccepted)
        rows = [each.event.row for each in events if isinstance(each.event, RowScored)]
        keys = [(row.system, row.ordinal, row.repeat) for row in rows]
        assert len(set(keys)) == len(keys)
        if len(events) >= run.last_seq:
            assert sum(each.completed for each in run.progress.values()) == len(keys)
        state = RunState.QUEUED
        for each in events[1:]:
            if isinstance(each.event, RowScored):
                assert not state.is_final
                continue
            assert isinstance(each.event, StateChanged | RunFinished)
            ended = isinstance(each.event, RunFinished)
            after = each.event.run.state if ended else each.event.state
            assert after.is_final == ended
            assert is_transition(state, after), (state, after)
            self.steps.add(step_named(each.event, after))
            state = after
        if len(events) >= run.last_seq:
            assert run.state is state
            if state.is_final:
                # What watchers are told, and the figures, are of all that is stored.
                assert events[-1].event == RunFinished(run)
                assert sum(map(rows_summarized, run.summary.values())) == len(keys)
        if run.end_time is not None:
            assert run.end_time >= run.create_time

    def teardown(self) -> None:
        self.daemon.end()
        shutil.rmtree(self.home, ignore_errors=True)


Life.TestCase.settings = settings(
    max_examples=MAX_EXAMPLES,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestLife = pytest.mark.slow(Life.TestCase)


@pytest.mark.slow  # It waits for a run to say that it waits, which takes a second.
def test_a_life_has_every_transition_of_the_table() -> None:
    """So that what Hypothesis plays is all that there is."""
    life = Life()
    life.start(1)
    life.answer(2)
    life.every_run_is_sound()
    for step in (life.drain, life.die, lambda: life.cancel(0, 2, 0), lambda: life.resume(0, 2)):
        step()
        life.answer(1)
        life.every_run_is_sound()
    life.answer(EXAMPLES)
    life.rescore(0)
    life.start(1, "silent")
    life.start(1, "fickle")
    life.change(False, False)
    life.every_run_is_sound()
    ended, waiting = life.runs[-2:]
    assert life.daemon.run(life.daemon.store.get_run(ended)).failure.reason == "SYSTEM_GONE"
    assert life.daemon.run(life.daemon.store.get_run(waiting)).state is RunState.WAITING
    life.change(True, True)
    life.resume(life.runs.index(ended), 2)
    life.daemon.run(life.rest(set()))
    life.every_run_is_sound()
    runs = life.daemon.run(life.daemon.store.list_runs())
    assert {run.state for run in runs} == {RunState.SUCCEEDED}
    life.delete(0, 2)
    life.every_run_is_sound()
    assert life.steps | {"start"} == {each.name for each in TRANSITIONS}
    life.teardown()
