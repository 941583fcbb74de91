"""System calls that Python does not offer."""

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from typing import Any

from cbench_server.sandbox.syscall_numbers import NUMBERS

IS_LINUX = sys.platform == "linux"
ARCHITECTURE = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())

PR_SET_PDEATHSIG = 1
PR_GET_DUMPABLE, PR_SET_DUMPABLE = 3, 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

# PyDLL keeps the interpreter lock, as os.fork does: clone must not be interrupted by it.
_libc = ctypes.PyDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long


Argument = int | bytes | ctypes.Structure | None


class Unsupported(OSError):
    """The kernel, or this code, does not know how on this machine."""


def prepare(name: str, *arguments: Argument) -> Callable[[], int]:
    """Return a system call with all its words made ahead: a fork has to make the call only."""
    number = NUMBERS.get(ARCHITECTURE, {}).get(name)
    if not IS_LINUX or number is None:
        raise Unsupported(f"{name} is not known on {sys.platform} {ARCHITECTURE}")
    words = [_word(each) for each in (number, *arguments)]

    def call() -> int:
        result: int = _syscall(*words)
        if result < 0:
            error = ctypes.get_errno()
            raise OSError(error, f"{name}: {os.strerror(error)}")
        return result

    return call


def _word(value: Argument) -> Any:
    if isinstance(value, ctypes.Structure):
        return ctypes.byref(value)
    return ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value)


def syscall(name: str, *arguments: Argument) -> int:
    """Make a system call by name and return its result; raises OSError if it fails."""
    return prepare(name, *arguments)()


def prctl(option: int, value: int) -> int:
    """Set or get a property of this process."""
    return syscall("prctl", option, value, 0, 0, 0)


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
