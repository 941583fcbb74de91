"""Power loss, on an ext4 file system that stops without writing its journal: what was said to be
stored is there when it comes back. The controls show that the loss is one.
"""

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from cbench_client import BenchClient
from cbench_server.events import RowScored
from cbench_server.spec import Run, RunSpec, RunState
from cbench_server.storage.sqlite import SqliteStore
from tests.compatibility.test_old_store import ARCHIVE
from tests.e2e.following import Followed
from tests.e2e.processes import DaemonProcess, start_system, wait_until
from tests.fixtures import preloaded
from tests.fixtures.ports import held_port

from .commands import COMMANDS, do, succeeded
from .machine import Disk, loop_disk
from .test_failpoints import armed
from .test_requests import spec_of

WRITER = Path(__file__).with_name("power_writer.py")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with loop_disk(tmp_path) as made:
        yield made


def told_until_the_cut(disk: Disk, what: str, how: str, lines: int) -> list[str]:
    """Have a process write, cut the power after some lines, and return all that it said."""
    command = [sys.executable, str(WRITER), str(disk.path / "home"), what, how]
    with preloaded.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline().strip() for _ in range(lines)]
        writer.send_signal(signal.SIGSTOP)
        disk.cut()
        writer.kill()
        rest = writer.stdout.read()
    return [*told, *rest.splitlines()[: rest.count("\n")]]


async def make_run(home: Path) -> None:
    store = SqliteStore.open(home)
    await store.create_run(Run("r1", RunSpec((), ()), RunState.RUNNING, 1.0, systems=("a",)))
    await store.close()


async def stored_rows(home: Path) -> dict[int, int]:
    """Return ordinals by seq; a store that cannot be read is an error."""
    store = SqliteStore.open(home)
    found: dict[int, int] = {}
    try:
        while page := await store.read_events("r1", max(found, default=1), processed=True):
            for each in page:
                assert isinstance(each.event, RowScored)
                found[each.seq] = each.event.row.ordinal
        return found
    finally:
        await store.close()


def rows_told(told: list[str]) -> dict[int, int]:
    return {int(seq): int(ordinal) for seq, ordinal in map(str.split, told)}


@pytest.mark.parametrize("lines", [40, pytest.param(0, marks=pytest.mark.faults)])
async def test_no_row_that_was_acknowledged_is_lost(
    disk: Disk, chance: random.Random, lines: int
) -> None:
    home = disk.path / "home"
    await make_run(home)
    for _ in range(1 if lines else 12):
        told = rows_told(told_until_the_cut(disk, "rows", "", lines or chance.randint(1, 400)))
        disk.restore()
        stored = await stored_rows(home)
        assert {seq: stored.get(seq) for seq in told} == told
        assert [*stored] == [*range(2, len(stored) + 2)]
        whole = sqlite3.connect(home / "cbench.db")
        assert whole.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        whole.close()


async def test_the_control_without_syncs_loses_rows(disk: Disk) -> None:
    home = disk.path / "home"
    await make_run(home)
    subprocess.run(["sync", "-f", str(home)], check=True)
    told = rows_told(told_until_the_cut(disk, "rows", "unsafe", 40))
    disk.restore()
    try:
        stored = await stored_rows(home)
    except Exception:
        stored = {}
    assert {seq: stored.get(seq) for seq in told} != told


@pytest.mark.parametrize("how", ["", "unsafe"])
def test_no_upload_that_was_acknowledged_is_lost(disk: Disk, how: str) -> None:
    """Without its syncs it is, which is the control."""
    told = told_until_the_cut(disk, "uploads", how, 3)
    disk.restore()
    command = [sys.executable, str(WRITER), str(disk.path / "home"), "read", *told]
    found = preloaded.run(command, capture_output=True, text=True).stdout.split()
    assert (found == ["whole"] * len(told)) == (how == "")


_UNSAFE = "import os, sys; os.fsync = lambda _: None; from cbench_server.cli import main; "


@pytest.mark.parametrize("how", ["", "unsafe"])
@pytest.mark.parametrize("name", ["tokens", "export", "archive"])
def test_what_a_command_has_written_is_not_lost(
    disk: Disk, tmp_path: Path, name: str, how: str
) -> None:
    """Without its syncs it is, which is the control; the store lies on a disk that stays."""
    command, folder = COMMANDS[name], disk.path / "folder"
    near = command.folder(tmp_path / "near")
    shutil.copytree(near, folder, ignore=lambda *_: ["home"])
    (folder / "home").symlink_to(near / "home")
    subprocess.run(["sync", "-f", str(folder)], check=True)
    _, *arguments = map(str, command.arguments(folder))
    unsafe = [sys.executable, "-c", f"{_UNSAFE}sys.exit(main({arguments!r}))"]
    succeeded(do(folder, *(unsafe if how else command.arguments(folder))))
    disk.cut()
    disk.restore()
    with pytest.raises((AssertionError, OSError)) if how else nullcontext():
        command.at_end(folder)


@pytest.mark.parametrize("moment", ["migrate.before", "migrate.after"])
def test_a_migration_is_done_or_not(disk: Disk, moment: str) -> None:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(disk.path, filter="data")
    home = disk.path / "home"
    subprocess.run(["sync", "-f", str(home)], check=True)
    with pytest.raises(AssertionError, match=f"killed at failpoint {moment}"):
        DaemonProcess(home, env=armed(moment))
    disk.cut()
    disk.restore()
    store = sqlite3.connect(home / "cbench.db")
    (revision,) = store.execute("SELECT version_num FROM alembic_version").fetchone()
    store.close()
    assert (revision == "0001") == (moment == "migrate.before")
    with DaemonProcess(home) as daemon, BenchClient(daemon.address) as client:
        listed = list(client.list())
        assert len(listed) == 5
        assert not any(run.failure.reason == "STORE_CORRUPT" for run in listed)


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_a_daemon_that_loses_power_goes_on_with_every_row_it_has_shown(
    disk: Disk, chance: random.Random
) -> None:
    home, port, rows = disk.path / "home", held_port(), 3000
    seen = Followed()
    daemon = DaemonProcess(home, port=port)
    with start_system("echo", "", "0.01") as system, BenchClient(daemon.address) as client:
        events = client.evaluate(spec_of(client, system, rows), request_id="one")

        def take() -> None:
            for event in events:
                seen.take(event)

        watcher = threading.Thread(target=take, daemon=True)
        watcher.start()
        try:
            for _ in range(6):
                goal = len(seen.rows) + chance.randint(20, 300)
                wait_until(lambda goal=goal: len(seen.rows) >= goal)
                disk.cut()
                daemon.kill()
                disk.restore()
                daemon = DaemonProcess(home, port=port)
            watcher.join(120)
            assert not watcher.is_alive()
            stored = [row.ordinal for row in client.rows(seen.finished.run_id)]
        finally:
            daemon.kill()
    assert (seen.state, seen.failures) == ("SUCCEEDED", {})
    assert sorted(seen.keys) == [("echo", ordinal, 0) for ordinal in range(rows)]
    assert stored == [*range(rows)]
