"""Kills at random moments: of daemons, systems and clients; every row comes once, none is lost."""

import json
import os
import random
import signal
import sqlite3
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2, bench_pb2_grpc
from tests.e2e.following import Followed, follow
from tests.e2e.processes import (
    DaemonProcess,
    Process,
    examples,
    rows_stored,
    start_held,
    start_system,
    wait_until,
)
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port

from .test_requests import BUILTIN, spec_of, together

# Calls in flight at a kill, and those answered but not yet stored; see tests/e2e/test_durability.
WINDOW = 16 + 80
RUNNING = 2


class Follower:
    """A client that follows a run through everything, in a thread."""

    def __init__(self, client: BenchClient, spec: dict[str, Any]) -> None:
        self.seen = Followed()
        self._events = client.evaluate(spec, request_id="one")
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        for event in self._events:
            self.seen.take(event)

    def wait_for_rows(self, daemon: DaemonProcess, more: int) -> bool:
        """Wait for so many rows beyond those that are stored; False if there are no more."""
        wait_until(lambda: self.seen.rows, 60)
        goal = rows_stored(daemon) + more
        wait_until(lambda: len(self.seen.rows) >= goal or self.seen.finished, 60)
        return not self.seen.finished

    def join(self) -> Followed:
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self.seen


def exact(seen: Followed, systems: list[str], rows: int, repeats: int = 1) -> None:
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == [
        (name, ordinal, repeat)
        for name in sorted(systems)
        for ordinal in range(rows)
        for repeat in range(repeats)
    ]
    for row in seen.rows:
        assert row.example_id.text == f"e{row.ordinal}"
        assert row.scores["recall"] == 1.0


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kills", "rows"), [(20, 2000), (200, 12_000)])
def test_a_daemon_killed_at_random_moments_loses_and_repeats_no_row(
    tmp_path: Path, chance: random.Random, kills: int, rows: int
) -> None:
    port, log, done = held_port(), tmp_path / "calls", 0
    daemon = DaemonProcess(tmp_path / "home", port=port)
    with start_system("echo", str(log), "0.02") as system, BenchClient(daemon.address) as client:
        follower = Follower(client, spec_of(client, system, rows, asked_again=0))
        try:
            while done < kills and follower.wait_for_rows(
                daemon, chance.randint(10, rows // kills // 2)
            ):
                daemon.kill()
                done += 1
                daemon = DaemonProcess(tmp_path / "home", port=port)
            seen = follower.join()
            stored = [row.ordinal for row in client.rows(seen.finished.run_id)]
            run = client.get(seen.finished.run_id)
        finally:
            daemon.kill()
    assert done == kills
    exact(seen, ["echo"], rows)
    assert stored == [*range(rows)]
    assert (run.progress.completed_rows, run.last_sequence) == (rows, seen.last_sequence)
    assert len(log.read_text().split()) - rows <= done * WINDOW


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_system_killed_or_stopped_twenty_times_costs_no_row(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path, chance: random.Random, how: str
) -> None:
    rows, port, log = 10_000, held_port(), tmp_path / "calls"
    system = start_system("echo", str(log), "0.005", port=port)
    try:
        follower = Follower(client, spec_of(client, system, rows, asked_again=0))
        for _ in range(20):
            assert follower.wait_for_rows(daemon, chance.randint(20, 150))
            if how == "kill":
                system.kill()
                system = start_system("echo", str(log), "0.005", port=port)
            else:
                os.kill(system.pid, signal.SIGSTOP)
                # A while is what is wanted here, and nothing ends it.
                threading.Event().wait(chance.random())
                os.kill(system.pid, signal.SIGCONT)
        seen = follower.join()
    finally:
        system.kill()
    exact(seen, ["echo"], rows)
    calls = Counter(log.read_text().split())
    assert sum(calls.values()) - rows <= (20 * 16 if how == "kill" else 0)


def pass_by(daemon: DaemonProcess, run_id: str, seen: Followed, goal: int) -> None:
    """Watch a run up to a sequence, and leave; the SDK would drop what it has seen before."""
    with grpc.insecure_channel(daemon.address) as channel:
        asked = bench_pb2.WatchRunRequest(run_id=run_id, after_sequence=seen.last_sequence)
        for response in bench_pb2_grpc.BenchStub(channel).WatchRun(asked):
            for event in response.events:
                seen.take(event)
                if seen.last_sequence == goal:
                    return


@pytest.mark.parametrize(
    ("times", "rows"), [(10, 500), pytest.param(100, 10_000, marks=pytest.mark.faults)]
)
def test_a_client_that_leaves_and_comes_back_sees_each_event_once(
    daemon: DaemonProcess,
    client: BenchClient,
    tmp_path: Path,
    chance: random.Random,
    times: int,
    rows: int,
) -> None:
    gate = tmp_path / "gate"
    # The last rows are kept back, so that the run is under way each time it is left.
    with start_held(gate, rows * 9 // 10) as system:
        run_id = client.start(spec_of(client, system, rows))
        seen = Followed()
        for _ in range(times):
            goal = seen.last_sequence + chance.randint(1, rows // times * 3 // 4)
            pass_by(daemon, run_id, seen, goal)
        assert client.get(run_id).state == RUNNING
        gate.touch()
        for event in client.watch(run_id, seen.last_sequence):
            seen.take(event)
    exact(seen, ["echo"], rows)
    assert "WAITING" not in seen.states


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_daemons_that_are_ended_under_load_repeat_no_call(
    tmp_path: Path, chance: random.Random
) -> None:
    rows, port, log = 1500, held_port(), tmp_path / "calls"
    daemon = DaemonProcess(tmp_path / "home", port=port)
    with start_system("echo", str(log), "0.01") as system, BenchClient(daemon.address) as client:
        follower = Follower(client, spec_of(client, system, rows, asked_again=0))
        try:
            for _ in range(6):
                assert follower.wait_for_rows(daemon, chance.randint(20, 150))
                assert daemon.terminate() == 0
                daemon = DaemonProcess(tmp_path / "home", port=port)
            seen = follower.join()
        finally:
            daemon.kill()
    exact(seen, ["echo"], rows)
    assert len(log.read_text().split()) == rows


def test_the_same_request_of_many_clients_makes_one_run(daemon: DaemonProcess) -> None:
    clients = [BenchClient(daemon.address) for _ in range(10)]
    asked = [(client, f"request {number % 3}") for number, client in enumerate(clients * 2)]
    calls = [lambda each=each: each[0].start(BUILTIN, request_id=each[1]) for each in asked]
    started = together(*calls)
    assert len(set(started)) == 3
    assert len(list(clients[0].list())) == 3
    for client in clients:
        client.close()


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_a_run_of_two_systems_and_repeats_survives_kills(
    tmp_path: Path, chance: random.Random
) -> None:
    rows, port = 200, held_port()
    daemon = DaemonProcess(tmp_path / "home", port=port)
    with (
        start_system("echo", "", "0.01") as echo,
        start_system("charges", "", "0.01") as charges,
        BenchClient(daemon.address) as client,
    ):
        spec = spec_of(client, echo, rows, repeats=2, asked_again=0)
        spec["systems"] = [{"target": echo.address}, {"target": charges.address}]
        follower = Follower(client, spec)
        try:
            for _ in range(8):
                assert follower.wait_for_rows(daemon, chance.randint(10, 60))
                daemon.kill()
                daemon = DaemonProcess(tmp_path / "home", port=port)
            seen = follower.join()
        finally:
            daemon.kill()
    exact(seen, ["charges", "echo"], rows, repeats=2)


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_a_rescoring_killed_again_and_again_is_whole(tmp_path: Path, chance: random.Random) -> None:
    home, port = tmp_path / "home", held_port()
    peers = Path(__file__).with_name("peers.py")
    with (
        DaemonProcess(home, port=port) as daemon,
        BenchClient(daemon.address) as client,
        Process([sys.executable, str(peers), "counts", "0"]) as peer,
    ):
        digest, _ = client.upload(examples(1500))
        given = {"name": "given", "upload": digest}
        spec = {"systems": [{"builtin": "identity"}], "datasets": [given]}
        parent = follow(client.evaluate(spec)).finished.run_id
        child = client.rescore(parent, [{"name": "counts", "target": peer.address}]).run_id
        again = daemon
        for _ in range(6):
            goal = client.get(child).progress.completed_rows + chance.randint(10, 150)
            wait_until(
                lambda goal=goal: (
                    (run := client.get(child)).state == 3 or run.progress.completed_rows >= goal
                )
            )
            again.kill()
            again = DaemonProcess(home, port=port)
        with again:
            seen = follow(client.watch(child))
            assert len(list(client.rows(parent))) == 1500
    assert (seen.state, seen.failures, len(seen.rows)) == ("SUCCEEDED", {}, 1500)
    assert {row.scores["counts"] for row in seen.rows} == {1.0}


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_cbench_run_killed_and_resumed_is_whole(tmp_path: Path, chance: random.Random) -> None:
    home, rows = tmp_path / "home", 1500
    environment = {**os.environ, "CBENCH_HOME": str(home)}
    data = tmp_path / "data.jsonl"
    data.write_text("\n".join(json.dumps(each) for each in examples(rows)))
    with start_system("echo", "", "0.01") as system:
        command = ["run", "--system", system.address, "--dataset", str(data), "--quiet"]
        process = preloaded.Popen([preloaded.CBENCH, *command], env=environment)
        (run_id,) = wait_until(lambda: run_ids(home), 60)
        for _ in range(4):
            goal = rows_of(home) + chance.randint(20, 200)
            wait_until(lambda goal=goal: rows_of(home) >= goal, 60)
            process.kill()
            process.wait()
            process = preloaded.Popen(
                [preloaded.CBENCH, "resume", run_id, "--quiet"], env=environment
            )
        assert process.wait(120) == 0
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        exact(follow(client.watch(run_id)), ["echo"], rows)


def query(home: Path, statement: str) -> list[Any]:
    try:
        store = sqlite3.connect(f"file:{home / 'cbench.db'}?mode=ro", uri=True)
    except sqlite3.Error:
        return []
    try:
        return [value for (value,) in store.execute(statement)]
    except sqlite3.Error:
        return []
    finally:
        store.close()


def run_ids(home: Path) -> list[str]:
    return query(home, "SELECT run_id FROM runs")


def rows_of(home: Path) -> int:
    return int(sum(query(home, "SELECT completed FROM run_systems")))
