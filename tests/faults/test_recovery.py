"""What a daemon makes of runs whose process died, wherever it died."""

import fcntl
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused
from cbench_server.runs.recovery import MAX_DEATHS
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, start_held, start_system, wait_until

from .test_requests import spec_of

FAILED = 4


def damage(home: Path, run_id: str) -> None:
    """Flip a bit in the record of a run."""
    with sqlite3.connect(home / "cbench.db") as store:
        (record,) = store.execute("SELECT record FROM runs WHERE run_id = ?", (run_id,)).fetchone()
        broken = record[:40] + bytes([record[40] ^ 1]) + record[41:]
        store.execute("UPDATE runs SET record = ? WHERE run_id = ?", (broken, run_id))
    store.close()


def test_a_damaged_record_hides_and_blocks_no_other_run(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with start_held(gate) as system:
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            spec = spec_of(client, system, 150)
            damaged, sound = client.start(spec), client.start(spec)
            wait_until(lambda: all(client.get(each).state == 2 for each in (damaged, sound)))
            daemon.kill()
        damage(home, damaged)
        gate.touch()
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            assert follow(client.watch(sound)).state == "SUCCEEDED"
            listed = {run.run_id: run for run in client.list()}
            assert listed[sound].state == 3
            assert listed[damaged].failure.reason == "STORE_CORRUPT"
            assert damaged in listed[damaged].failure.message
            assert any(damaged in line and "left alone" in line for line in daemon.errors)
            client.delete(damaged)
            assert [run.run_id for run in client.list()] == [sound]


def test_a_run_whose_record_is_damaged_under_way_is_stopped_and_deleted(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with (
        start_held(gate) as system,
        DaemonProcess(home) as daemon,
        BenchClient(daemon.address) as client,
    ):
        spec = spec_of(client, system, 150)
        damaged, sound = client.start(spec), client.start(spec)
        wait_until(lambda: all(client.get(each).state == 2 for each in (damaged, sound)))
        damage(home, damaged)
        with pytest.raises(Refused, match="is in progress. Cancel it first"):
            client.delete(damaged)
        with pytest.raises(Refused, match=f"the record of run .{damaged}. is damaged"):
            client.cancel(damaged)
        client.delete(damaged)
        gate.touch()
        assert follow(client.watch(sound)).state == "SUCCEEDED"
        assert [run.run_id for run in client.list()] == [sound]
        assert not [*home.glob("locks/*")]


def test_a_run_whose_lock_outlives_its_process_is_taken_up_when_it_is_free(tmp_path: Path) -> None:
    """Children inherit locks, and may end a moment after the daemon that was killed."""
    home, gate = tmp_path / "home", tmp_path / "gate"
    with start_held(gate) as system:
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            spec = spec_of(client, system, 100)
            locked, free = client.start(spec), client.start(spec)
            wait_until(lambda: all(client.get(each).state == 2 for each in (locked, free)))
            daemon.kill()
        gate.touch()
        with open(home / "locks" / f"{locked}.lock", "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            daemon = DaemonProcess(home)
            client = BenchClient(daemon.address)
            # Runs are taken up in their order, so that the other has been tried by then.
            assert follow(client.watch(free)).state == "SUCCEEDED"
        with daemon, client:
            assert follow(client.watch(locked)).state == "SUCCEEDED"


def wait_until_taken_up(client: BenchClient, run_id: str, after: int) -> int:
    def is_taken_up() -> int:
        run = client.get(run_id)
        return run.last_sequence if run.last_sequence > after and run.state == 2 else 0

    return int(wait_until(is_taken_up))


def test_a_run_alive_at_several_deaths_is_not_taken_up_until_someone_asks(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with start_system("echo", "", "3600") as system:
        with (
            DaemonProcess(home, "--drain-seconds", "0.1") as daemon,
            BenchClient(daemon.address) as client,
        ):
            run_id = client.start(spec_of(client, system, 30))
            wait_until(lambda: client.get(run_id).state == 2)
            # Ending in good order is no death.
            last = client.get(run_id).last_sequence
            assert daemon.terminate() == 0
        for _ in range(MAX_DEATHS):
            with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
                last = wait_until_taken_up(client, run_id, last)
                daemon.kill()
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            run = wait_until(lambda: (run := client.get(run_id)).state == FAILED and run)
            assert run.failure.reason == "DAEMON_DIED"
            assert f"cbench resume {run_id}" in run.failure.message
            client.resume(run_id)
            last = wait_until_taken_up(client, run_id, run.last_sequence)
            daemon.kill()
        # What someone asked for begins to count anew.
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            wait_until_taken_up(client, run_id, last)


def test_a_run_whose_owner_was_killed_is_taken_up_by_whoever_is_asked(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with (
        start_held(gate) as system,
        DaemonProcess(home) as first,
        DaemonProcess(home) as second,
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        run_id = client.start(spec_of(client, system, 200))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        first.kill()
        gate.touch()
        other.resume(run_id)
        seen = follow(other.watch(run_id))
    assert seen.state == "SUCCEEDED"
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(200)]


def is_stopped_between_writes(daemon: DaemonProcess) -> bool:
    """Stop a daemon, unless that would keep the store locked for all others."""
    os.kill(daemon.pid, signal.SIGSTOP)
    store = sqlite3.connect(daemon.home / "cbench.db", timeout=0.1, isolation_level=None)
    try:
        store.execute("BEGIN IMMEDIATE")
        store.execute("ROLLBACK")
        return True
    except sqlite3.OperationalError:
        os.kill(daemon.pid, signal.SIGCONT)
        return False
    finally:
        store.close()


def test_an_owner_that_slept_through_its_end_changes_nothing(tmp_path: Path) -> None:
    home, gate = tmp_path / "home", tmp_path / "gate"
    with (
        start_held(gate) as system,
        DaemonProcess(home) as first,
        DaemonProcess(home) as second,
        BenchClient(first.address) as client,
        BenchClient(second.address) as other,
    ):
        run_id = client.start(spec_of(client, system, 300))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 20)
        wait_until(lambda: is_stopped_between_writes(first))
        gate.touch()
        try:
            # The claim of a process that lives cannot be taken, so its file is.
            (home / "locks" / f"{run_id}.lock").unlink()
            other.resume(run_id)
            wait_until(lambda: other.get(run_id).progress.completed_rows >= 60)
        finally:
            os.kill(first.pid, signal.SIGCONT)
        seen = follow(other.watch(run_id))
        wait_until(lambda: any("has another owner" in line for line in first.errors))
    assert seen.state == "SUCCEEDED"
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(300)]
