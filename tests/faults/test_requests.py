"""Requests that meet: every run has one end, told once and last, and a table says which."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from cbench_client import BenchClient, Refused
from cbench_client._gen.cbench.v1 import bench_pb2, bench_pb2_grpc
from cbench_server.events import RunFinished
from cbench_server.runs.intents import Answer
from cbench_server.runs.ownership import Claim
from cbench_server.spec import Run, RunSpec, RunState
from cbench_server.storage.sqlite import SqliteStore
from tests.e2e.following import follow
from tests.e2e.processes import (
    DaemonProcess,
    Process,
    examples,
    start_held,
    start_system,
    wait_until,
)

from .test_life import Daemon

BUILTIN = {"systems": [{"builtin": "truncate-tail"}], "datasets": [{"name": "mini-qa"}]}


def spec_of(client: BenchClient, system: Process, count: int, **more: Any) -> dict[str, Any]:
    digest, _ = client.upload(examples(count))
    given = {"name": "given", "upload": digest}
    return {"systems": [{"target": system.address}], "datasets": [given], "timed_rows": 0, **more}


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Make calls at the same moment; return their results, or what they raised."""
    ready = threading.Barrier(len(calls))

    def make(call: Callable[[], Any]) -> Any:
        ready.wait()
        try:
            return call()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(make, calls))


def test_a_run_that_is_cancelled_twice_at_once_is_cancelled(
    client: BenchClient, tmp_path: Path
) -> None:
    with start_held(tmp_path / "gate") as system:
        spec = spec_of(client, system, 400)
        for _ in range(5):
            run_id = client.start(spec)
            wait_until(lambda run_id=run_id: client.get(run_id).state == 2)
            runs = together(*[lambda run_id=run_id: client.cancel(run_id)] * 3)
            assert {run.state for run in runs} == {5}
            assert follow(client.watch(run_id)).state == "CANCELLED"


def test_a_cancel_at_the_end_leaves_one_end_which_is_the_stored_one(client: BenchClient) -> None:
    for step in range(20):
        run_id = client.start(BUILTIN)
        wait_until(
            lambda run_id=run_id, step=step: (
                client.get(run_id).progress.completed_rows >= 2.5 * step
            )
        )
        client.cancel(run_id)
        events = list(client.watch(run_id))
        ends = [event.finished.state for event in events if event.HasField("finished")]
        assert ends == [client.get(run_id).state]
        stored = [event for event in events if event.sequence]
        assert stored[-1].HasField("finished")


def test_a_cancel_at_the_end_by_another_process_leaves_one_end(tmp_path: Path) -> None:
    with (
        DaemonProcess(tmp_path / "home") as first,
        DaemonProcess(tmp_path / "home") as second,
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        for step in range(12):
            run_id = client.start(BUILTIN)
            wait_until(
                lambda run_id=run_id, step=step: (
                    other.get(run_id).progress.completed_rows >= 4 * step
                )
            )
            other.cancel(run_id)
            seen = follow(client.watch(run_id))
            assert seen.state in ("SUCCEEDED", "CANCELLED")
            wait_until(lambda: not list((tmp_path / "home" / "locks").glob("2*")))
            assert other.cancel(run_id).state == client.get(run_id).state


def test_a_cancel_that_claims_a_run_which_has_just_ended_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, owner = Daemon(tmp_path, lambda: 1.0), SqliteStore.open(tmp_path)
    run = Run("r1", RunSpec((), ()), RunState.RUNNING, 1.0, systems=("a",))
    asked.run(owner.create_run(run))
    acquire = asked.store.owners.acquire

    async def acquire_late(run_id: str) -> Claim | None:
        await owner.append(run_id, [RunFinished(run)], update={"state": RunState.SUCCEEDED})
        return await acquire(run_id)

    monkeypatch.setattr(asked.store.owners, "acquire", acquire_late)
    assert asked.run(asked.orchestrator.cancel("r1")).state is RunState.SUCCEEDED
    assert not asked.store.owners.is_mine("r1")
    asked.run(owner.close())
    asked.end()


def test_resumes_at_once_all_find_the_run_in_progress(client: BenchClient, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with start_held(gate) as system:
        run_id = client.start(spec_of(client, system, 300))
        for _ in range(3):
            wait_until(lambda: client.get(run_id).state == 2)
            client.cancel(run_id)
            runs = together(*[lambda: client.resume(run_id)] * 8)
            assert all(not isinstance(run, Exception) for run in runs), runs
        gate.touch()
        assert follow(client.watch(run_id)).state == "SUCCEEDED"


def test_a_resume_in_another_process_changes_nothing(tmp_path: Path) -> None:
    with (
        start_held(tmp_path / "gate") as system,
        DaemonProcess(tmp_path / "home") as first,
        DaemonProcess(tmp_path / "home") as second,
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        run_id = client.start(spec_of(client, system, 200))
        wait_until(lambda: client.get(run_id).state == 2)
        assert other.resume(run_id).state == 2
        with pytest.raises(Refused, match="in progress. Cancel it first"):
            other.delete(run_id)
        other.cancel(run_id)
        assert follow(client.watch(run_id)).state == "CANCELLED"


@pytest.mark.parametrize("kind", ["cancel", "resume", "delete"])
def test_what_another_process_has_done_is_not_done_again(tmp_path: Path, kind: str) -> None:
    """Both may find what is asked of the owner before it is answered."""
    asked, other = Daemon(tmp_path, lambda: 1.0), SqliteStore.open(tmp_path)
    state = RunState.RUNNING if kind == "cancel" else RunState.CANCELLED
    asked.run(other.create_run(Run("r1", RunSpec((), ()), state, 1.0, systems=("a",))))
    asked.run(other.intents.ask("r1", kind, {"budget_usd": None}))
    [intent] = asked.run(asked.store.intents.unanswered())
    asked.run(other.intents.answer(intent, Answer("It was refused.")))
    assert asked.run(asked.orchestrator.perform(intent)) is False
    assert asked.run(other.get_run("r1")).state is state
    assert asked.run(other.intents.answer_to(intent.id)) == Answer("It was refused.")
    asked.run(other.close())
    asked.end()


@pytest.mark.parametrize(
    ("kind", "arguments"), [("resume", {}), ("explain", {}), ("rename", {"to": "r2"})]
)
def test_what_another_version_asks_keeps_nothing_else_from_being_done(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path, kind: str, arguments: dict[str, str]
) -> None:
    async def ask(run_id: str) -> None:
        store = SqliteStore.open(daemon.home)
        odd = await store.intents.ask(run_id, kind, arguments)
        while not (answer := await store.intents.answer_to(odd)):
            await asyncio.sleep(0.02)
        assert f"{kind} cannot be done" in answer.refusal
        await store.intents.ask(run_id, "cancel", {})
        await store.close()

    with start_held(tmp_path / "gate") as system:
        run_id = client.start(spec_of(client, system, 300))
        wait_until(lambda: client.get(run_id).state == 2)
        asyncio.run(asyncio.wait_for(ask(run_id), 60))
        assert follow(client.watch(run_id)).state == "CANCELLED"


@pytest.mark.faults
def test_what_was_asked_of_two_daemons_at_once_is_over_when_all_are_answered(
    tmp_path: Path, chance: random.Random
) -> None:
    with (
        start_held(tmp_path / "gate", 3) as system,
        DaemonProcess(tmp_path / "home") as first,
        DaemonProcess(tmp_path / "home") as second,
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        spec = spec_of(client, system, 50)
        for _ in range(20):
            run_id = client.start(spec)
            wait_until(lambda run_id=run_id: client.get(run_id).state == 2)
            ask = [client.cancel, client.resume, *[other.cancel, other.resume] * 2]
            chance.shuffle(ask)
            together(*[lambda run_id=run_id, call=call: call(run_id) for call in ask])
            if client.get(run_id).state == 5:
                continue
            for each in (client, other):
                # Refused while the run is open; and its turn comes after whatever waits still.
                with pytest.raises(Refused, match="in progress. Cancel it first"):
                    each.delete(run_id)
            other.cancel(run_id)


def test_a_rescoring_counts_the_rows_that_its_parent_got_meanwhile(tmp_path: Path) -> None:
    gate, turn = tmp_path / "gate", tmp_path / "turn"
    with (
        start_held(gate, 5) as system,
        start_held(turn, 0) as holder,
        DaemonProcess(tmp_path / "home", "--max-runs", "1") as first,
        DaemonProcess(tmp_path / "home") as second,
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        parent = client.start(spec_of(client, system, 20))
        wait_until(lambda: client.get(parent).progress.completed_rows >= 5)
        client.cancel(parent)
        held = client.start(spec_of(client, holder, 1))
        rescored = client.rescore(parent)
        assert (rescored.state, rescored.progress.total_rows) == (1, 5)
        gate.touch()
        other.resume(parent)
        assert follow(other.watch(parent)).state == "SUCCEEDED"
        turn.touch()
        assert follow(client.watch(held)).state == "SUCCEEDED"
        progress = follow(client.watch(rescored.run_id)).finished.progress
        assert (progress.completed_rows, progress.total_rows) == (20, 20)


def test_a_queued_run_is_cancelled_by_whoever_is_asked(tmp_path: Path) -> None:
    with (
        start_held(tmp_path / "gate") as system,
        DaemonProcess(tmp_path / "home", "--max-runs", "1") as first,
        DaemonProcess(tmp_path / "home") as second,
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        spec = spec_of(client, system, 500)
        working, queued, wanted = (client.start(spec) for _ in range(3))
        assert client.cancel(queued).state == 5
        # Asked of another process, and kept until the owner has read it, though its turn comes.
        other.cancel(wanted)
        client.cancel(working)
        assert follow(client.watch(wanted)).state == "CANCELLED"
        assert follow(client.watch(queued)).states == []


def test_a_waiting_run_is_cancelled(client: BenchClient, tmp_path: Path) -> None:
    with start_held(tmp_path / "gate") as system:
        run_id = client.start(spec_of(client, system, 300))
        wait_until(lambda: client.get(run_id).progress.completed_rows)
    wait_until(lambda: client.get(run_id).state == 6)
    run = client.cancel(run_id)
    assert (run.state, run.waiting_reason) == (5, "")


def test_no_more_runs_are_taken_than_there_is_room_for(tmp_path: Path) -> None:
    with (
        start_held(tmp_path / "gate") as system,
        DaemonProcess(tmp_path / "home", "--max-runs", "1", "--max-queued", "4") as daemon,
        BenchClient(daemon.address) as client,
    ):
        spec = spec_of(client, system, 300)
        ended = together(*[lambda: client.start(spec)] * 16)
        refused = [each for each in ended if isinstance(each, Refused)]
        assert len(refused) == 11
        assert {error.code for error in refused} == {"RESOURCE_EXHAUSTED"}
        assert len(list(client.list())) == 5
        locks = list((tmp_path / "home" / "locks").iterdir())
        assert len([path for path in locks if path.name != "migrate.lock"]) <= 6


def test_requests_that_repeat_an_id_leave_no_lock_behind(daemon: DaemonProcess) -> None:
    with BenchClient(daemon.address) as client:
        ended = together(*[lambda: client.start(BUILTIN, request_id="once")] * 8)
        assert len(set(ended)) == 1
        follow(client.watch(ended[0]))
        wait_until(lambda: not list((daemon.home / "locks").glob("2*")))


@pytest.fixture
def stub(daemon: DaemonProcess) -> Iterator[Any]:
    """What is generated, for calls that no client of ours would make."""
    with grpc.insecure_channel(daemon.address) as channel:
        yield bench_pb2_grpc.BenchStub(channel)


def test_a_run_whose_client_left_while_it_was_accepted_is_made(
    client: BenchClient, stub: Any, chance: random.Random
) -> None:
    spec = bench_pb2.RunSpec()
    spec.systems.add(builtin="truncate-tail")
    spec.datasets.add(name="mini-qa")
    for number in range(30):
        request = bench_pb2.EvaluateRequest(spec=spec, request_id=f"request {number}")
        with suppress(grpc.RpcError):
            list(stub.Evaluate(request, timeout=chance.uniform(0.001, 0.06)))
    # Its client comes back with the request, as ours do.
    runs = [client.start(BUILTIN, request_id=f"request {number}") for number in range(30)]
    wait_until(lambda: all(client.get(run_id).state == 3 for run_id in runs), 100)
    assert len(list(client.list())) == 30


def test_a_request_whose_client_left_is_carried_out_or_not(
    client: BenchClient, stub: Any, chance: random.Random
) -> None:
    with start_system("echo", "", "3600") as system:
        run_id = client.start(spec_of(client, system, 5))
        for _ in range(15):
            client.cancel(run_id)
            with suppress(grpc.RpcError):
                request = bench_pb2.ResumeRunRequest(run_id=run_id)
                stub.ResumeRun(request, timeout=chance.uniform(0.001, 0.03))
            # Queued, and nobody to begin it, is neither.
            wait_until(lambda: client.get(run_id).state in (2, 5))
            client.resume(run_id)
            wait_until(lambda: client.get(run_id).state == 2)
            with suppress(grpc.RpcError):
                cancel = bench_pb2.CancelRunRequest(run_id=run_id)
                stub.CancelRun(cancel, timeout=chance.uniform(0.001, 0.03))


def test_an_upload_whose_client_left_at_its_opening_leaves_no_file(
    daemon: DaemonProcess, client: BenchClient, chance: random.Random
) -> None:
    hold = threading.Event()

    def nothing_yet() -> Iterator[bench_pb2.UploadExamplesRequest]:
        hold.wait()
        yield from ()

    with grpc.insecure_channel(daemon.address) as channel:
        stub = bench_pb2_grpc.BenchStub(channel)
        for _ in range(60):
            call = stub.UploadExamples.future(nothing_yet())
            threading.Event().wait(chance.uniform(0, 0.004))
            call.cancel()
        hold.set()
    folder = daemon.home / "uploads"
    client.upload([{"context": "c"}])
    wait_until(lambda: [path.suffix for path in folder.iterdir()] == [".examples"])
