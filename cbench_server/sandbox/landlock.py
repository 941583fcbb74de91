"""Landlock: which files a process may still open, without any privilege."""

import os
import struct
from collections.abc import Iterable

from cbench_server.sandbox.syscalls import PR_SET_NO_NEW_PRIVS, prctl, syscall

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_FIRST_ABI = (1 << 13) - 1


def abi() -> int:
    """Return the version of Landlock that the kernel has; 0 for none."""
    try:
        return syscall("landlock_create_ruleset", None, 0, 1)
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Close all files to this process but those below the given paths."""
    version = abi()
    if version < 1:
        raise OSError("this kernel has no Landlock")
    handled = _FIRST_ABI
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE)):
        handled |= right if version >= since else 0
    # Files; TCP bind and connect; abstract sockets and signals.
    attributes = struct.pack("=QQQ", handled, 3, 3)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = syscall("landlock_create_ruleset", attributes[:size], size, 0)
    try:
        for path in readable:
            _allow(rules, path, (_READ_FILE | _READ_DIR | _EXECUTE) & handled)
        for path in writable:
            _allow(rules, path, handled & ~_EXECUTE)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        syscall("landlock_restrict_self", rules, 0)
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(path):
            rights &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
        beneath = 1
        syscall("landlock_add_rule", rules, beneath, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)
