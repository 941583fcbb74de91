"""A store that is full or busy makes runs wait, and costs no row."""

import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused
from tests.e2e.following import Followed
from tests.e2e.processes import DaemonProcess, start_held, start_system, wait_until

from .machine import small_disk
from .test_requests import BUILTIN, spec_of

WAITING = 6


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    with small_disk(tmp_path / "disk") as folder:
        yield folder


def descriptors(daemon: DaemonProcess) -> int:
    return len(os.listdir(f"/proc/{daemon.pid}/fd"))


def fill(ballast: Path) -> None:
    """Leave no space beside a file."""
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_a_full_disk_makes_a_run_wait_and_costs_no_row(disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(27_000_000))
    with (
        start_system("echo", "", "0.002") as system,
        DaemonProcess(disk / "home") as daemon,
        BenchClient(daemon.address) as client,
    ):
        spec = spec_of(client, system, 3000)
        run_id = client.start(spec)
        watcher = client.watch(run_id)
        seen = Followed()
        while "WAITING" not in seen.states:
            seen.take(next(watcher))
        run = client.get(run_id)
        assert run.state == WAITING
        assert "no space is left" in run.waiting_reason
        assert next(iter(client.list())).state == WAITING
        # What is refused meanwhile holds on to nothing.
        before = descriptors(daemon)
        for _ in range(5):
            with pytest.raises(Refused) as refused:
                client.start(spec)
            assert refused.value.reason == "STORE_FULL"
        wait_until(lambda: descriptors(daemon) <= before)
        assert [path.stem for path in (disk / "home" / "locks").glob("2*")] == [run_id]
        ballast.unlink()
        for event in watcher:
            seen.take(event)
    assert seen.state == "SUCCEEDED"
    assert seen.failures == {}
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(3000)]


def test_a_run_left_on_a_full_disk_waits_and_requests_about_it_are_refused(disk: Path) -> None:
    gate, ballast = disk / "gate", disk / "ballast"
    home = disk / "home"
    with start_held(gate, 50) as system:
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            run_id = client.start(spec_of(client, system, 300))
            wait_until(lambda: client.get(run_id).progress.completed_rows >= 30)
        gate.touch()
        fill(ballast)
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run)
            assert "no space is left" in run.waiting_reason
            for ask in (client.cancel, client.resume, client.delete):
                with pytest.raises(Refused) as refused:
                    ask(run_id)
                assert refused.value.reason == "STORE_FULL"
            ballast.unlink()
            seen = Followed()
            for event in client.watch(run_id):
                seen.take(event)
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(300)]


def test_a_full_disk_is_called_that_where_nobody_had_the_store_open(disk: Path) -> None:
    home = disk / "home"
    with DaemonProcess(home) as daemon:
        assert daemon.terminate() == 0
    assert not (home / "cbench.db-shm").exists()
    fill(disk / "ballast")
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        with pytest.raises(Refused, match="no space is left") as refused:
            client.start(BUILTIN)
        assert refused.value.reason == "STORE_FULL"


def test_a_store_that_cannot_be_written_is_waited_for_until_a_cancel(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with start_held(gate, 120) as system:
        run_id = client.start(spec_of(client, system, 5000))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 100)
        unlimited = resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (4096, unlimited[1]))
        gate.touch()
        wait_until(lambda: client.get(run_id).state == WAITING)
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, unlimited)
        assert client.cancel(run_id).state == 5
        rows = [row.ordinal for row in client.rows(run_id)]
        assert len(rows) == len(set(rows)) >= 100


def test_a_busy_store_is_waited_for(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with start_held(gate, 100) as system:
        run_id = client.start(spec_of(client, system, 1500))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 50)
        other = sqlite3.connect(daemon.home / "cbench.db", timeout=60, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        gate.touch()
        run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run)
        assert "the store has not answered" in run.waiting_reason
        other.execute("ROLLBACK")
        other.close()
        seen = Followed()
        for event in client.watch(run_id):
            seen.take(event)
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(1500)]
