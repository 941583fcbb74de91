"""Ends process groups once whoever started them is gone: `python groups.py`, told on its stdin.

A process that is killed stops nothing that it has started. This program, in a session of its
own, sees the end of its stdin then, and does it. It needs the standard library only.
"""

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

GRACE_S = 5.0
_LOOK_EVERY_S = 0.05

_lock = threading.Lock()
_program: "subprocess.Popen[bytes] | None" = None


def prepare() -> None:
    """Start to watch, before a group is started: it may be needed at once."""
    global _program
    with _lock:
        if _program is None:
            _program = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            atexit.register(_close)


def end_with_us(leader: int) -> None:
    """Have a process group ended when this process is gone, however that comes."""
    prepare()
    with _lock:
        _tell(f"+{leader}\n")


def has_ended(leader: int) -> None:
    """Leave a process group alone from now on: it has ended, and its number may be used again."""
    with _lock:
        _tell(f"-{leader}\n")


def _tell(line: str) -> None:
    if _program is not None and _program.stdin is not None:
        # Somebody may have ended the program; then there is nobody to tell.
        with suppress(OSError):
            _program.stdin.write(line.encode())
            _program.stdin.flush()


def _close() -> None:
    if _program is not None and _program.stdin is not None:
        with suppress(OSError):
            _program.stdin.close()
        _program.wait()


def _signal_groups(leaders: Iterable[int], number: int) -> list[int]:
    """Send a signal to groups; return those that still exist."""
    found = []
    for leader in leaders:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
            found.append(leader)
    return found


def _main() -> None:
    leaders: set[int] = set()
    for line in sys.stdin.buffer:
        number = int(line[1:])
        if line.startswith(b"+"):
            leaders.add(number)
        else:
            leaders.discard(number)
    end = time.monotonic() + GRACE_S
    left = _signal_groups(leaders, signal.SIGTERM)
    while left and time.monotonic() < end:
        time.sleep(_LOOK_EVERY_S)
        left = _signal_groups(left, 0)
    _signal_groups(left, signal.SIGKILL)


if __name__ == "__main__":
    _main()
