"""Signals that end a command: whatever it waits for, it is over a few seconds later.

A command ends in order: it stops what it has launched, and a daemon inside it hands its runs back.
Something in the way (a thread that looks up a name, a system that does not return) must not keep
the process, though. Rows are on disk or not at all, so that ending it by force is safe.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable

from cbench_server.cli.exits import INTERRUPTED

END_SECONDS = 6.0
_EXIT_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: 128 + signal.SIGTERM}

_last_acts: list[Callable[[], None]] = []
_told = threading.Event()


def obey_signals() -> None:
    """Let SIGTERM end this process in order, and either signal end it in time."""
    signal.signal(signal.SIGTERM, _end)
    read, write = os.pipe()
    os.set_blocking(write, False)
    # Told by the signal itself, even while the main thread is busy in native code.
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(read,), name="cbench-signals", daemon=True).start()


def leave_if_told(code: int) -> None:
    """Leave, if a signal asked for it: Python would wait for every thread to end."""
    if _told.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        leave(code)


def before_leaving(act: Callable[[], None]) -> None:
    """Have something done before the process is ended by force."""
    _last_acts.append(act)


def leave(code: int) -> None:
    """End the process at once."""
    for act in _last_acts:
        act()
    os._exit(code)


def _end(number: int, _: object) -> None:
    # As an exception, so that what a command has started is stopped too; a second one at once.
    signal.signal(signal.SIGTERM, lambda number, _: leave(128 + number))
    sys.exit(128 + number)


def _watch(pipe: int) -> None:
    while number := os.read(pipe, 1):
        code = _EXIT_CODES.get(signal.Signals(number[0]))
        if code is not None:
            _told.set()
            timer = threading.Timer(END_SECONDS, _end_by_force, [code])
            timer.daemon = True
            timer.start()


def _end_by_force(code: int) -> None:
    sys.stderr.write(f"cbench: not everything ended within {END_SECONDS:g}s; left it.\n")
    leave(code)
