"""A machine for faults: disks that fill or lose power, networks that are cut, or a skip by name."""

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

# <linux/ext4.h>: stop the file system at once, and do not even write its journal.
_EXT4_IOC_SHUTDOWN = 0x8004587D
_NOLOGFLUSH = 2


def do(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the system, or skip the test by its name."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )


def demand(*command: str | Path) -> None:
    """Do what needs rights that a machine may withhold: then the test is skipped, and says why."""
    done = do(*command)
    if done.returncode:
        shown = " ".join(map(str, command))
        pytest.skip(f"this machine does not allow `{shown}`: {done.stderr.strip()}")


class Disk:
    """An ext4 file system on a loop device, whose power can be cut."""

    def __init__(self, folder: Path, megabytes: int = 128, options: str = "commit=3600") -> None:
        # Commits of the journal come from what a program syncs, and not from time.
        self._options = f"loop,{options}"
        self._image = folder / "disk.img"
        self.path = folder / "disk"
        self.path.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(megabytes << 20)
        demand("mkfs.ext4", "-q", "-F", self._image)
        self._mount()

    def _mount(self) -> None:
        demand("mount", "-o", self._options, self._image, self.path)

    def cut(self) -> None:
        """Lose all that has not reached the disk. Nothing can be written any more."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _EXT4_IOC_SHUTDOWN, struct.pack("I", _NOLOGFLUSH))
        finally:
            os.close(descriptor)

    @property
    def trigger(self) -> Path:
        """What the kernel takes for an error of the file system, once it is written to."""
        device = do("findmnt", "-no", "SOURCE", self.path).stdout.strip()
        trigger = Path("/sys/fs/ext4") / Path(device).name / "trigger_fs_error"
        if not trigger.exists():
            pytest.skip(f"this machine has no {trigger}")
        return trigger

    def fail(self) -> None:
        """Have the kernel find the file system damaged; with errors=remount-ro it is read only."""
        self.trigger.write_text("a test")

    def restore(self) -> None:
        """Start again with what the disk holds; its users must have ended."""
        subprocess.run(["umount", str(self.path)], check=True)
        self._mount()

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)


@contextmanager
def loop_disk(folder: Path) -> Iterator[Disk]:
    disk = Disk(folder)
    try:
        yield disk
    finally:
        disk.close()


@contextmanager
def small_disk(folder: Path, megabytes: int = 32) -> Iterator[Path]:
    """A file system in memory that is soon full."""
    folder.mkdir(parents=True)
    demand("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Wire:
    """A network of two: this machine, and a namespace in which programs can be started."""

    _made = count()

    def __init__(self) -> None:
        # A name of its own each time: a link is removed some time after its namespace.
        number = os.getpid() * 16 + next(self._made) % 16
        self.name = f"cbf{number}"
        # Of its own, since tests of other checkouts may run on the same machine.
        first = number % 64 * 4
        network = f"10.{200 + number // 64 // 256 % 50}.{number // 64 % 256}"
        self.here, self.there = f"{network}.{first + 1}", f"{network}.{first + 2}"
        self._link = f"{self.name}h"
        demand("ip", "netns", "add", self.name)
        try:
            demand(
                *("ip", "link", "add", self._link, "type", "veth"),
                *("peer", "name", "wire", "netns", self.name),
            )
            demand("ip", "address", "add", f"{self.here}/30", "dev", self._link)
            demand("ip", "link", "set", self._link, "up")
            inside = ("ip", "-n", self.name)
            demand(*inside, "address", "add", f"{self.there}/30", "dev", "wire")
            demand(*inside, "link", "set", "wire", "up")
            demand(*inside, "link", "set", "lo", "up")
        except BaseException:
            self.close()
            raise

    def inside(self, command: list[str]) -> list[str]:
        """Return the command that runs another one on the far side."""
        return ["ip", "netns", "exec", self.name, *command]

    def cut(self) -> None:
        """Drop every packet, and tell nobody: the far end goes, so no sender is refused."""
        subprocess.run(["ip", "-n", self.name, "link", "set", "wire", "down"], check=True)

    def mend(self) -> None:
        subprocess.run(["ip", "-n", self.name, "link", "set", "wire", "up"], check=True)

    def close(self) -> None:
        subprocess.run(["ip", "netns", "delete", self.name], check=False)


@contextmanager
def wire() -> Iterator[Wire]:
    made = Wire()
    try:
        yield made
    finally:
        made.close()
