"""A shared store whose database goes away, and owners that sleep through their leases."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2
from tests.e2e.following import Followed, follow
from tests.e2e.processes import DaemonProcess, Process, examples, start_held
from tests.fixtures.postgres import PASSWORD, PostgresServer, postgres_server
from tests.fixtures.waiting import wait_until

# It stops and starts a database server of its own.
pytestmark = pytest.mark.faults

ROWS = 200
FLAGS = ("--lease-seconds", "3")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of this file's own, which it stops."""
    with postgres_server() as running:
        yield running


@contextmanager
def daemons(store: str, tmp_path: Path, *names: str) -> Iterator[list[DaemonProcess]]:
    started = [
        DaemonProcess(tmp_path / name, *FLAGS, env={"CBENCH_STORE": store}) for name in names
    ]
    try:
        yield started
    finally:
        for each in started:
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)
                each.kill()


def spec_of(client: BenchClient, system: Process) -> dict[str, Any]:
    digest = client.upload(examples(ROWS))[0]
    return {
        "systems": [{"name": "echo", "target": system.address}],
        "datasets": [{"name": "sent", "upload": digest}],
        "timed_rows": 0,
        "asked_again": 0,
    }


def assert_exact(followed: Followed) -> None:
    assert (followed.state, followed.failures) == ("SUCCEEDED", {})
    assert sorted(followed.keys) == [("echo", ordinal, 0) for ordinal in range(ROWS)]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
def test_a_run_waits_while_the_database_is_away_and_goes_on(
    server: PostgresServer, tmp_path: Path, how: signal.Signals
) -> None:
    gate = tmp_path / "gate"
    with (
        start_held(gate, 50) as system,
        daemons(server.new_store(), tmp_path, "one") as (daemon,),
        BenchClient(daemon.address) as client,
    ):
        run_id = client.start(spec_of(client, system))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        seen = Followed()
        events = client.watch(run_id)
        seen.take(next(events))  # The stream is open from here on.
        server.stop(how)
        try:
            gate.touch()
            for event in events:
                seen.take(event)
                if event.WhichOneof("kind") == "state_change":
                    told = event.state_change
                    if told.state == bench_pb2.RUN_STATE_WAITING:
                        assert server.address().rpartition("@")[2].partition("/")[0] in str(told)
                        break
        finally:
            server.start()
        for event in events:
            seen.take(event)
        assert_exact(seen)
        assert PASSWORD not in "".join(daemon.errors)


def test_an_owner_that_sleeps_past_its_lease_changes_nothing_any_more(
    server: PostgresServer, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with (
        start_held(gate, 50) as system,
        daemons(server.new_store(), tmp_path, "one", "two") as (first, second),
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        run_id = client.start(spec_of(client, system))
        wait_until(lambda: other.get(run_id).progress.completed_rows >= 20)
        first.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: "resumed unfinished runs" in "".join(second.errors))
        first.process.send_signal(signal.SIGCONT)
        gate.touch()
        assert_exact(follow(other.watch(run_id)))
        # The cursor of one daemon holds at the other, each event once and in order.
        assert_exact(follow(client.watch(run_id)))
        wait_until(lambda: "another owner by now" in "".join(first.errors))


def test_a_cancel_at_another_daemon_reaches_the_owner(
    server: PostgresServer, tmp_path: Path
) -> None:
    with (
        start_held(tmp_path / "gate", 50) as system,
        daemons(server.new_store(), tmp_path, "one", "two") as (first, second),
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        run_id = client.start(spec_of(client, system))
        wait_until(lambda: other.get(run_id).progress.completed_rows >= 20)
        other.cancel(run_id)
        wait_until(lambda: other.get(run_id).state == bench_pb2.RUN_STATE_CANCELLED)
        assert client.get(run_id).state == bench_pb2.RUN_STATE_CANCELLED
