"""Systems launched for one run, which print `cbench|1|tcp|HOST:PORT` on their stdout.

Each leads its own process group: it can be stopped together with everything it
has started, and Ctrl-C reaches only this process.
"""

import os
import re
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from cbench_server.cli.exits import CommandFailed, UsageError
from cbench_server.cli.signals import before_leaving

PROTOCOL_MAJOR = 1
HANDSHAKE_SECONDS = 30.0
STOP_SECONDS = 5.0
_STDERR_LINES = 5
_KEPT_BYTES = 4000
_MAX_LINE = 4096
_HANDSHAKE = re.compile(r"cbench\|(\d+)\|(tcp|unix)\|(\S+)")

_running: list["subprocess.Popen[bytes]"] = []


@contextmanager
def launched(commands: Sequence[str]) -> Iterator[Callable[[], list[str]]]:
    """Start every command, and stop them all at the end.

    Yields a function that waits for them to say where they listen, so that
    other things can be made ready meanwhile.
    """
    with ExitStack() as stack:
        started = [stack.enter_context(_process(command)) for command in commands]

        def targets() -> list[str]:
            found = [
                _target(command, process, errors)
                for command, (process, errors) in zip(commands, started, strict=True)
            ]
            for process, _ in started:
                _PipeEnd(process.stdout)
            return found

        yield targets


def kill_all() -> None:
    """Kill everything that is still running, at once."""
    for process in _running:
        _signal_group(process, signal.SIGKILL)


@contextmanager
def _process(command: str) -> Iterator[tuple["subprocess.Popen[bytes]", "_PipeEnd"]]:
    words = _words(command)
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "CBENCH_HANDSHAKE": "1"},
        )
    except OSError as error:
        raise UsageError(f"cannot launch `{command}`: {error.strerror}: {words[0]}") from error
    if not _running:
        before_leaving(kill_all)
    _running.append(process)
    try:
        yield process, _PipeEnd(process.stderr)
    finally:
        _stop(process)
        _running.remove(process)


class _PipeEnd:
    """Reads a pipe to its end, so that its writer never blocks, and keeps the last part."""

    def __init__(self, pipe: Any) -> None:
        self._pipe = pipe
        self._kept = b""
        self._thread = threading.Thread(target=self._read, name="cbench-launch", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._pipe:
            while part := self._pipe.read1(65536):
                self._kept = (self._kept + part)[-_KEPT_BYTES:]

    def __str__(self) -> str:
        # The last output of a process that has just ended may still be in the pipe.
        self._thread.join(1.0)
        lines = self._kept.decode("utf-8", "replace").strip().splitlines()[-_STDERR_LINES:]
        if not lines:
            return ""
        return f" The end of its stderr: {' / '.join(line.strip() for line in lines)}"


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"cannot launch `{command}`: {error}.") from error
    if not words:
        raise UsageError('--launch is empty; give it a command such as "python my_system.py".')
    return words


def _target(command: str, process: "subprocess.Popen[bytes]", errors: _PipeEnd) -> str:
    line = _first_line(process, time.monotonic() + HANDSHAKE_SECONDS)
    if line is None and process.poll() is None:
        raise CommandFailed(
            f"`{command}` did not say where it listens within {HANDSHAKE_SECONDS:g}s: the first "
            f"line on its stdout must be cbench|{PROTOCOL_MAJOR}|tcp|HOST:PORT.{errors}"
        )
    if not line:
        code = process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise CommandFailed(f"`{command}` {how} before it said where it listens.{errors}")
    text = line.decode("utf-8", "replace").strip()
    match = _HANDSHAKE.fullmatch(text)
    if match is None:
        raise CommandFailed(
            f'`{command}` said "{text[:200]}" on its stdout instead of '
            f"cbench|{PROTOCOL_MAJOR}|tcp|HOST:PORT. Everything else belongs on stderr."
            f"{errors}"
        )
    if int(match[1]) != PROTOCOL_MAJOR:
        raise CommandFailed(
            f"`{command}` speaks protocol {match[1]}, this cbench speaks {PROTOCOL_MAJOR}. "
            "Upgrade the older of the two."
        )
    return match[3] if match[2] == "tcp" else f"unix:{match[3]}"


def _first_line(process: "subprocess.Popen[bytes]", deadline: float) -> bytes | None:
    """Read a line; empty or unfinished if the process ends first, None when time is up."""
    stdout: Any = process.stdout
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while b"\n" not in line and len(line) < _MAX_LINE:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            if not (part := os.read(stdout.fileno(), 512)):
                break
            line += part
    return line.partition(b"\n")[0]


def _stop(process: "subprocess.Popen[bytes]") -> None:
    _signal_group(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    # Also after a clean exit: its children may still run in its group.
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
