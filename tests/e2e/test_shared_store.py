"""Several daemons on one store: requests at any of them, one queue, and what a daemon lacks."""

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cbench_client import Attachment, BenchClient, ClientError
from cbench_client._gen.cbench.v1 import bench_pb2
from tests.e2e.following import Followed, follow
from tests.e2e.processes import DaemonProcess, Process, examples, start_held
from tests.e2e.test_metrics import fetch, samples
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.waiting import wait_until

FLAGS = ("--lease-seconds", "3", "--max-runs", "1")
ROWS = 30
RUNNING, QUEUED, WAITING = (
    bench_pb2.RUN_STATE_RUNNING,
    bench_pb2.RUN_STATE_QUEUED,
    bench_pb2.RUN_STATE_WAITING,
)


@pytest.fixture(scope="module")
def store(postgres: PostgresServer) -> str:
    return postgres.new_store()


METRICS = held_port()


def queued() -> float:
    """What the first daemon says of the queue."""
    return samples(fetch(f"http://127.0.0.1:{METRICS}/metrics"))["cbench_runs_queued{}"]


def start(store: str, home: Path, *flags: str) -> DaemonProcess:
    return DaemonProcess(home, *FLAGS, *flags, env={"CBENCH_STORE": store})


@pytest.fixture(scope="module")
def two(
    store: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BenchClient, BenchClient]]:
    """Clients of two daemons, each of which works on one run at a time."""
    home = tmp_path_factory.mktemp("daemons")
    with (
        start(store, home / "one", "--metrics", f"127.0.0.1:{METRICS}") as one,
        start(store, home / "two") as two,
        BenchClient(one.address) as first,
        BenchClient(two.address) as second,
    ):
        yield first, second


def spec_of(client: BenchClient, system: dict[str, str]) -> dict[str, Any]:
    digest = client.upload(examples(ROWS))[0]
    return {
        "systems": [system],
        "datasets": [{"name": "sent", "upload": digest}],
        "timed_rows": 0,
        "asked_again": 0,
    }


def held(client: BenchClient, system: Process) -> dict[str, Any]:
    return spec_of(client, {"name": "echo", "target": system.address})


def exact(followed: Followed) -> bool:
    return followed.state == "SUCCEEDED" and sorted(followed.keys) == [
        ("echo", ordinal, 0) for ordinal in range(ROWS)
    ]


def state(client: BenchClient, run_id: str) -> Any:
    return client.get(run_id).state


def test_runs_are_started_once_in_order_by_whichever_daemon_has_a_turn(
    two: tuple[BenchClient, BenchClient], tmp_path: Path
) -> None:
    first, second = two
    gates = [tmp_path / str(number) for number in range(4)]
    systems = [start_held(gate, 5) for gate in gates]
    try:
        runs = [first.start(held(first, system)) for system in systems]
        # Two turns in all: the first two are worked on, though all came to one daemon.
        wait_until(lambda: [state(second, run) for run in runs[:2]] == [RUNNING, RUNNING])
        assert [state(first, run) for run in runs[2:]] == [QUEUED, QUEUED]
        wait_until(lambda: queued() == 2)
        for done, following in ((1, 2), (0, 3)):
            gates[done].touch()
            assert exact(follow(second.watch(runs[done])))
            wait_until(lambda following=following: state(first, runs[following]) == RUNNING)
            assert state(second, runs[3]) == (RUNNING if following == 3 else QUEUED)
        for gate in gates:
            gate.touch()
        for client, run in zip((first, second), runs[2:], strict=True):
            followed = follow(client.watch(run))
            assert exact(followed)
            begun = [each for each in followed.states if each == "RUNNING"]
            assert len(begun) == 1
        wait_until(lambda: queued() == 0)
    finally:
        for system in systems:
            system.kill()


def test_what_is_asked_at_another_daemon_is_done_or_refused_by_the_owner(
    two: tuple[BenchClient, BenchClient], tmp_path: Path
) -> None:
    first, second = two
    gate = tmp_path / "gate"
    with start_held(gate, 5) as system:
        run = first.start(held(first, system))
        wait_until(lambda: state(second, run) == RUNNING)
        for client in two:
            with pytest.raises(ClientError, match="in progress. Cancel it first"):
                client.delete(run)
            assert client.resume(run).state == RUNNING
            with pytest.raises(ClientError, match="its budget stands"):
                client.resume(run, budget_usd=3.0)
        assert second.cancel(run).state == bench_pb2.RUN_STATE_CANCELLED
        # At once, whether the owner has let it go by now or not.
        gate.touch()
        second.resume(run)
        assert exact(follow(first.watch(run)))
        for _ in range(2):
            second.delete(run)
        with pytest.raises(ClientError, match="no run"):
            first.get(run)


def test_two_daemons_that_resume_one_run_at_once_have_one_of_them_do_it(
    two: tuple[BenchClient, BenchClient], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with start_held(gate, 5) as system, ThreadPoolExecutor(8) as pool:
        run = two[0].start(held(two[0], system))
        wait_until(lambda: two[0].get(run).progress.completed_rows > 0)
        two[1].cancel(run)
        resumed = list(pool.map(lambda number: two[number % 2].resume(run), range(8)))
        # Not before: a run that has ended in between refuses the rest of them, and rightly.
        gate.touch()
        assert {each.run_id for each in resumed} == {run}
        events = list(two[1].watch(run))
    assert exact(follow(events))
    assert [each.state_change.reason for each in events].count("resumed") == 1


def test_the_same_request_at_two_daemons_at_once_makes_one_run(
    two: tuple[BenchClient, BenchClient],
) -> None:
    spec = {
        "systems": [{"builtin": "identity"}],
        "datasets": [{"name": "mini-qa", "max_examples": 2}],
    }
    with ThreadPoolExecutor(8) as pool:
        runs = set(
            pool.map(lambda number: two[number % 2].start(spec, request_id="twice"), range(8))
        )
    assert len(runs) == 1
    assert follow(two[1].watch(runs.pop())).state == "SUCCEEDED"


def test_a_watcher_goes_on_at_another_daemon_with_its_cursor(
    two: tuple[BenchClient, BenchClient], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    seen = []
    with start_held(gate, 10) as system:
        run = two[0].start(held(two[0], system))
        wait_until(lambda: two[0].get(run).progress.completed_rows >= 10)
        for turn in range(4):
            cursor = seen[-1] if seen else 0
            for event in two[turn % 2].watch(run, cursor):
                if event.sequence:
                    seen.append(event.sequence)
                if len(seen) == 3 * (turn + 1):
                    break
        gate.touch()
        seen += [each.sequence for each in two[1].watch(run, seen[-1]) if each.sequence]
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) >= ROWS + 2


class Held:
    """An attached system that keeps its answers until it is let go."""

    name = "echo"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.calls = 0

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        if self.calls > 5:
            self.go.wait(120)
        return {**example, "response": "Paris"}


def shown(store: str, home: Path, run: str) -> dict[str, Any]:
    """Ask the store, without a daemon."""
    done = preloaded.run(
        [str(preloaded.CBENCH), "show", run, "--output", "json"],
        env={**os.environ, "CBENCH_STORE": store, "CBENCH_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_a_daemon_that_lacks_what_a_run_needs_says_so_and_leaves_it(
    postgres: PostgresServer, tmp_path: Path, how: str
) -> None:
    store = postgres.new_store()
    system = Held()
    with (
        start(store, tmp_path / "one") as one,
        start(store, tmp_path / "two") as other,
        BenchClient(one.address) as client,
        BenchClient(other.address) as second,
    ):
        with Attachment(system, one.address) as attachment:
            assert attachment.wait_attached(60)
            run = client.start(spec_of(client, {"attached": "echo"}))
            wait_until(lambda: second.get(run).progress.completed_rows > 0)
            if how == "killed":
                one.kill()
                system.go.set()
            else:
                system.go.set()
                assert one.terminate() == 0
        lacks = 'lacks the attached system "echo"'
        wait_until(lambda: lacks in second.get(run).waiting_reason)
        assert second.get(run).state == WAITING
        [listed] = second.list()
        assert lacks in listed.waiting_reason
        # Also to who asks no daemon.
        wait_until(lambda: lacks in (shown(store, tmp_path, run)["waiting_reason"] or ""))
        with Attachment(system, other.address):
            assert exact(follow(second.watch(run)))
