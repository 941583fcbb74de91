"""System calls that Python does not offer."""

import ctypes
import os
import platform
import sys

from cbench_server.sandbox.syscall_numbers import NUMBERS

IS_LINUX = sys.platform == "linux"
ARCHITECTURE = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

# PyDLL keeps the interpreter lock, as os.fork does: clone must not be interrupted by it.
_libc = ctypes.PyDLL(None, use_errno=True)


class Unsupported(OSError):
    """The kernel, or this code, does not know how on this machine."""


def syscall(name: str, *arguments: int | bytes | None) -> int:
    """Make a system call by name and return its result; raises OSError if it fails."""
    number = NUMBERS.get(ARCHITECTURE, {}).get(name)
    if not IS_LINUX or number is None:
        raise Unsupported(f"{name} is not known on {sys.platform} {ARCHITECTURE}")
    words = [
        ctypes.c_long(each) if isinstance(each, int) else ctypes.c_char_p(each)
        for each in arguments
    ]
    _libc.syscall.restype = ctypes.c_long
    result = int(_libc.syscall(ctypes.c_long(number), *words))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def prctl(option: int, value: int) -> None:
    """Set a property of this process."""
    syscall("prctl", option, value, 0, 0, 0)


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount something; see mount(2)."""
    kind_bytes = None if kind is None else kind.encode()
    data_bytes = None if data is None else data.encode()
    syscall("mount", os.fsencode(source), os.fsencode(target), kind_bytes, flags, data_bytes)


def clone(flags: int) -> int:
    """Fork into the namespaces that the flags name, without Python's and C's fork hooks.

    The hooks cost half a millisecond and are for processes with threads; the
    caller must have none, and must reseed `random` in the child.
    """
    signal_child = 17
    return syscall("clone", flags | signal_child, 0, 0, 0, 0)
