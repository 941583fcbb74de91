"""A store that cannot be written is read all the same; what is under way waits for it."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, Process, start_held, wait_until
from tests.fixtures import preloaded
from tests.fixtures.preloaded import CBENCH

from .machine import Disk, demand, small_disk
from .test_requests import BUILTIN, spec_of

WAITING, SUCCEEDED = 6, 3
ROWS = 300


def bound(home: Path) -> DaemonProcess:
    """Start a daemon that permissions bind, though it is root's."""
    without = "-dac_override,-dac_read_search"
    wrapper = ["setpriv", "--bounding-set", without, "--inh-caps", without]
    return DaemonProcess(home, under=wrapper if os.geteuid() == 0 else [])


def half_done(home: Path, gate: Path, system: Process) -> str:
    """Leave a run that is done, and one that is under way, as a daemon that is killed does."""
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        assert follow(client.evaluate(BUILTIN)).state == "SUCCEEDED"
        run_id = client.start(spec_of(client, system, ROWS))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 10)
    gate.touch()
    return run_id


def warnings(daemon: Process) -> list[str]:
    lines = [json.loads(line) for line in list(daemon.errors)]
    return [line["message"] for line in lines if line["level"] == "warning"]


def read_all(client: BenchClient, run_id: str) -> None:
    """Read a store in every way, and find that nothing can be written to it."""
    runs = list(client.list())
    assert run_id in [run.run_id for run in runs]
    done = next(run for run in runs if run.state == SUCCEEDED)
    assert len(list(client.rows(done.run_id))) == done.progress.completed_rows > 0
    assert follow(client.watch(done.run_id)).state == "SUCCEEDED"
    assert len(list(client.rows(run_id))) >= 10
    assert "cannot be written" in wait_until(lambda: client.get(run_id).waiting_reason)
    writes: list[Callable[[], object]] = [
        lambda: client.start(BUILTIN),
        lambda: client.upload([{"context": "c"}]),
        lambda: client.cancel(run_id),
        lambda: client.delete(done.run_id),
    ]
    for write in writes:
        with pytest.raises(Refused, match="cannot be written") as refused:
            write()
        assert refused.value.reason == "STORE_AWAY"


def read_by_commands(home: Path, run_id: str, folder: Path) -> None:
    """Read a store as a person does who has no daemon."""

    def cbench(*arguments: str, code: int = 0) -> str:
        environment = {**os.environ, "CBENCH_HOME": str(home)}
        done = preloaded.run(
            [CBENCH, *arguments], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == code, done.stderr
        return str(done.stdout + done.stderr)

    assert run_id in cbench("runs")
    assert "of 300 rows" in cbench("show", run_id)
    cbench("export", run_id, "--format", "run", "-o", str(folder / "kept.run"))
    refusal = cbench("run", "--builtin", "identity", "--dataset", "mini-qa", code=1)
    assert "cannot be written" in refusal
    assert "Traceback" not in refusal
    inspected = cbench("doctor", "--deep", code=1)
    assert "cannot be written" in inspected
    assert "This is no damage." in inspected


@contextmanager
def mounted_read_only(disk: Path) -> Iterator[None]:
    demand("mount", "-o", "remount,ro", disk)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "ended"])
def test_a_store_on_a_read_only_mount_is_read(tmp_path: Path, is_killed: bool) -> None:
    gate = tmp_path / "gate"
    with start_held(gate) as system, small_disk(tmp_path / "disk") as disk:
        home = disk / "home"
        run_id = half_done(home, gate, system)
        if not is_killed:
            # Who closes it in good order leaves no log beside the file.
            preloaded.run([CBENCH, "runs"], env={**os.environ, "CBENCH_HOME": str(home)})
            assert sorted(path.name for path in home.glob("cbench.db*")) == ["cbench.db"]
        with mounted_read_only(disk):
            with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
                read_all(client, run_id)
                assert daemon.terminate() == 0
                (said,) = [line for line in warnings(daemon) if "none is taken on" in line]
                assert str(home / "cbench.db") in said
                assert "Traceback" not in "".join(daemon.errors)
            read_by_commands(home, run_id, tmp_path)


def test_a_store_without_permissions_is_read_and_used_once_it_has_them(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    home = tmp_path / "home"
    with start_held(gate) as system:
        run_id = half_done(home, gate, system)
        closed = [home, *home.iterdir()]
        modes = {path: path.stat().st_mode for path in closed}
        for path in closed:
            path.chmod(0o500 if path.is_dir() else 0o400)
        with bound(home) as daemon, BenchClient(daemon.address) as client:
            read_all(client, run_id)
            for path in closed:
                path.chmod(modes[path])
            # The run that it could not take up is taken up by itself.
            assert follow(client.watch(run_id)).state == "SUCCEEDED"
            assert len(list(client.rows(run_id))) == ROWS
            assert follow(client.evaluate(BUILTIN)).state == "SUCCEEDED"
            assert daemon.terminate() == 0


def test_a_folder_that_nothing_can_be_made_in_is_no_store(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o500)
    with pytest.raises(AssertionError, match="cannot be written") as died:
        bound(home)
    assert "Traceback" not in str(died.value)


@pytest.mark.faults
def test_a_run_waits_while_its_store_is_read_only_and_goes_on(
    daemon: DaemonProcess, client: BenchClient, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    files = [daemon.home / "cbench.db", daemon.home / "cbench.db-wal"]
    with start_held(gate, 60) as system:
        run_id = client.start(spec_of(client, system, ROWS))
        wait_until(lambda: client.get(run_id).progress.completed_rows >= 10)
        # Unlike permissions it also holds for files that are open.
        demand("chattr", "+i", *files)
        try:
            gate.touch()
            run = wait_until(lambda: (run := client.get(run_id)).state == WAITING and run)
            assert "cbench.db cannot be written" in run.waiting_reason
            with pytest.raises(Refused, match="cannot be written"):
                client.start(BUILTIN)
            assert len(list(client.rows(run_id))) >= 10
            wait_until(lambda: [said for said in warnings(daemon) if "waits for its store" in said])
        finally:
            subprocess.run(["chattr", "-i", *map(str, files)], check=True)
        seen = follow(client.watch(run_id))
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(ROWS)]


@pytest.mark.faults
def test_a_disk_that_turns_read_only_under_a_run_costs_no_row(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    disk = Disk(tmp_path / "loop", options="errors=remount-ro")
    try:
        with start_held(gate, 60) as system:
            home = disk.path / "home"
            with DaemonProcess(home, "--drain-seconds", "1") as daemon:
                with BenchClient(daemon.address) as client:
                    run_id = client.start(spec_of(client, system, ROWS))
                    # Not within a commit, whose outcome nobody could tell (test_unsynced.py).
                    wait_until(lambda: client.get(run_id).progress.completed_rows == 60)
                    disk.fail()
                    gate.touch()
                    wait_until(lambda: client.get(run_id).state == WAITING)
                    seen = {row.ordinal for row in client.rows(run_id)}
                assert daemon.terminate() == 0
                assert "Traceback" not in "".join(daemon.errors)
            with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
                assert seen <= {row.ordinal for row in client.rows(run_id)}
            disk.restore()
            with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
                ended = follow(client.watch(run_id))
                assert (ended.state, ended.failures) == ("SUCCEEDED", {})
                assert sorted(ended.keys) == [("echo", ordinal, 0) for ordinal in range(ROWS)]
    finally:
        disk.close()
