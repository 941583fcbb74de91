"""Linux namespaces: a separate root for the zygote, a process table for each candidate."""

import os
import struct
from collections.abc import Callable

from cbench_server.sandbox.syscalls import (
    PR_SET_DUMPABLE,
    clone,
    mount,
    prctl,
    prepare,
    syscall,
)

_NEW_MOUNTS, _NEW_HOSTNAME, _NEW_IPC = 0x20000, 0x4000000, 0x8000000
_NEW_USERS, _NEW_PIDS, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT = 1, 2, 4, 32
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_DETACH = 2

WORK_AREA = "/tmp"

_NOBODY = 65534
_INNER_ID = 1000


def enter(readable: list[str]) -> None:
    """Move this process into a root that holds nothing but the given paths, read-only.

    Afterwards it is an ordinary user who may still make namespaces: the
    network, the host's processes' files and IPC are out of reach for good.
    """
    around = _NEW_MOUNTS | _NEW_NETWORK | _NEW_IPC | _NEW_HOSTNAME
    is_root = os.getuid() == 0
    if is_root:
        syscall("unshare", around)
    else:
        uid, gid = os.getuid(), os.getgid()
        syscall("unshare", _NEW_USERS | around)
        _map_ids(uid, gid)
    mount("none", "/", None, _RECURSIVE | _PRIVATE)
    _build_root("/tmp", readable)
    os.chdir("/tmp")
    syscall("pivot_root", b".", b".")
    syscall("umount2", b".", _DETACH)
    os.chdir("/")
    if is_root:
        # Needed to map ids, below.
        mount("proc", "/proc", "proc", _NO_SUID | _NO_DEVICES)
    mount("none", "/", None, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)
    if is_root:
        # Root's files must not be ours, and a user who never had privileges cannot regain any.
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        prctl(PR_SET_DUMPABLE, 1)
        syscall("unshare", _NEW_USERS | _NEW_MOUNTS)
        _map_ids(_NOBODY, _NOBODY)
        mount("none", "/", None, _RECURSIVE | _PRIVATE)
        # What came from the outer namespace cannot be unmounted, only covered.
        mount("tmpfs", "/proc", "tmpfs", _READ_ONLY, "size=4k")


def fork_apart() -> int:
    """Fork a child that is the first process of a new table, with its own mounts."""
    return clone(_NEW_PIDS | _NEW_MOUNTS)


def fork_alone() -> int:
    """Fork a child that is the first process of a new table, with the mounts we have."""
    return clone(_NEW_PIDS)


def work_area_mount(size_mb: int) -> Callable[[], int]:
    """Return the call that gives a process, and no other, a place in memory to write to."""
    options = f"size={size_mb}m,nr_inodes=8192,mode=1777".encode()
    flags = _NO_SUID | _NO_DEVICES
    return prepare("mount", b"tmpfs", WORK_AREA.encode(), b"tmpfs", flags, options)


def capability_drop() -> Callable[[], int]:
    """Return the call by which a process gives up every capability it holds."""
    version_3 = 0x20080522
    return prepare("capset", struct.pack("=Ii", version_3, 0), bytes(24))


def _map_ids(uid: int, gid: int) -> None:
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{_INNER_ID} {uid} 1"),
        ("gid_map", f"{_INNER_ID} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def _build_root(root: str, readable: list[str]) -> None:
    mount("tmpfs", root, "tmpfs", _NO_SUID | _NO_DEVICES, "size=1m,mode=755")
    for path in readable:
        inside = root + path
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        if os.path.isdir(path):
            os.makedirs(inside, exist_ok=True)
        else:
            open(inside, "a").close()
        mount(path, inside, None, _BIND | _RECURSIVE)
        if not path.startswith("/dev/"):
            _make_read_only(inside)
    for name in ("tmp", "proc"):
        os.makedirs(f"{root}/{name}", exist_ok=True)


def _make_read_only(path: str) -> None:
    try:
        mount("none", path, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)
    except PermissionError:
        # A flag that the mount already has may not be taken off; ask for the fewest.
        mount("none", path, None, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID)
