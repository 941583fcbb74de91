"""A commit that is cut off between writing and sync: it is shown once the disk has it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cbench_client import BenchClient
from cbench_client.errors import ClientError
from tests.e2e.following import follow
from tests.e2e.processes import DaemonProcess, Process, start_held, wait_until
from tests.fixtures import preloaded
from tests.fixtures.preloaded import CBENCH

from .machine import Disk, demand
from .test_read_only import WAITING, bound
from .test_requests import spec_of

SYNC = Path(__file__).with_name("failing_sync.c")
ROWS, ANSWERED = 200, 40


class Fault:
    """What a daemon meets at its next sync of the store's log."""

    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / "sync.so", folder / "fault"
        demand("cc", "-shared", "-fPIC", "-o", self._library, SYNC, "-ldl")

    def daemon(self, home: Path) -> DaemonProcess:
        # Not forked: the library comes first in a new process.
        under = ["env", f"LD_PRELOAD={self._library}", f"FAULT={self._file}"]
        return DaemonProcess(home, "--drain-seconds", "1", under=under)

    def arm(self, trigger: str = "") -> None:
        """Have the process killed, or what is named triggered."""
        self._file.with_suffix(".new").write_text(trigger)
        self._file.with_suffix(".new").rename(self._file)

    def wait(self) -> None:
        wait_until(lambda: not self._file.exists())


@pytest.fixture
def fault(tmp_path: Path) -> Fault:
    return Fault(tmp_path)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    made = Disk(tmp_path / "loop", options="commit=3600,errors=remount-ro")
    try:
        yield made
    finally:
        made.close()


def begun(client: BenchClient, system: Process) -> str:
    run_id = client.start(spec_of(client, system, ROWS))
    wait_until(lambda: client.get(run_id).progress.completed_rows == ANSWERED)
    return run_id


def shown(client: BenchClient, run_id: str) -> set[int]:
    return {row.ordinal for row in client.rows(run_id)}


def goes_on(home: Path, run_id: str) -> None:
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        ended = follow(client.watch(run_id))
        assert (ended.state, ended.failures) == ("SUCCEEDED", {})
        assert sorted(ended.keys) == [("echo", ordinal, 0) for ordinal in range(ROWS)]


def test_a_commit_that_met_a_failing_disk_is_shown_by_nobody(
    tmp_path: Path, fault: Fault, disk: Disk
) -> None:
    home, gate = disk.path / "home", tmp_path / "gate"
    with start_held(gate, ANSWERED) as system:
        with fault.daemon(home) as daemon, BenchClient(daemon.address) as client:
            run_id = begun(client, system)
            fault.arm(str(disk.trigger))
            gate.touch()
            wait_until(lambda: client.get(run_id).state == WAITING)
            assert shown(client, run_id) == {*range(ANSWERED)}
            assert daemon.terminate() == 0
        # What the log holds is more than what was stored, and only memory has that.
        with pytest.raises(AssertionError, match="is not opened: its disk has failed") as refused:
            DaemonProcess(home)
        assert "Traceback" not in str(refused.value)
        environment = {**os.environ, "CBENCH_HOME": str(home)}
        listed = preloaded.run([CBENCH, "runs"], capture_output=True, text=True, env=environment)
        assert listed.returncode == 1
        assert "is not opened: its disk has failed" in listed.stderr
        disk.restore()
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            assert shown(client, run_id) >= {*range(ANSWERED)}
        goes_on(home, run_id)


def test_a_commit_that_a_failing_disk_only_said_it_had_is_shown_by_nobody(
    tmp_path: Path, fault: Fault, disk: Disk
) -> None:
    home, gate = disk.path / "home", tmp_path / "gate"
    with start_held(gate, ANSWERED) as system:
        with fault.daemon(home) as daemon, BenchClient(daemon.address) as client:
            run_id = begun(client, system)
            fault.arm(f"!{disk.trigger}")
            gate.touch()
            fault.wait()
            wait_until(lambda: is_refused(client, run_id))
            daemon.terminate()
        with pytest.raises(AssertionError, match="is not opened: its disk has failed"):
            DaemonProcess(home)
        disk.restore()
        goes_on(home, run_id)


def is_refused(client: BenchClient, run_id: str) -> bool:
    try:
        client.get(run_id)
    except ClientError as error:
        return "its disk has failed, and may not have got the last" in str(error)
    return False


def test_a_commit_whose_process_died_in_it_is_on_the_disk_before_it_is_shown(
    tmp_path: Path, fault: Fault, disk: Disk
) -> None:
    home, gate = disk.path / "home", tmp_path / "gate"
    with start_held(gate, ANSWERED) as system:
        with fault.daemon(home) as daemon, BenchClient(daemon.address) as client:
            run_id = begun(client, system)
            fault.arm()
            gate.touch()
            assert daemon.process.wait(60) == -signal.SIGKILL
        # By one who cannot write, and so takes nothing from the log into the store.
        for path in [home, *home.iterdir()]:
            path.chmod(0o500 if path.is_dir() else 0o400)
        with bound(home) as daemon, BenchClient(daemon.address) as client:
            seen = shown(client, run_id)
            assert seen > {*range(ANSWERED)}
            disk.cut()
        disk.restore()
        for path in [home, *home.iterdir()]:
            path.chmod(0o700 if path.is_dir() else 0o600)
        with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
            assert shown(client, run_id) >= seen
        goes_on(home, run_id)
