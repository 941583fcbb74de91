"""A program that is started for every request: one object on its stdin, one on its stdout."""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

from cbench_client import RemoteFailure
from cbench_server.bridges.exchange import (
    MAX_ANSWER_BYTES,
    Message,
    called,
    checked,
    decoded,
    encoded,
)
from cbench_server.bridges.program import end_of
from cbench_server.cluster import groups

_LAST_LINES = 10
_LOOK_EVERY_S = 0.1
_GRACE_S = 0.5


class ProgramPerRequest:
    """A command that answers one request and ends."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self._who = called(words)
        self._ids = itertools.count(1)

    async def ask(self, request: Message) -> Message:
        """See Exchange."""
        line = encoded({"id": next(self._ids), **request})
        groups.prepare()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                # Ended with all that it has started, when nobody waits for it any more.
                start_new_session=True,
            )
        except OSError as error:
            raise RemoteFailure(
                f"{self._who} cannot be started: {error.strerror}", reason="NOT_READY"
            ) from error
        groups.end_with_us(process.pid)
        ending = asyncio.ensure_future(_end_what_is_left(process))
        try:
            printed, last_words, _ = await asyncio.gather(
                _read(process.stdout), _show(process.stderr), _write(process.stdin, line)
            )
            code = await process.wait()
        finally:
            ending.cancel()
            _kill_group(process.pid)
            groups.has_ended(process.pid)
        if code:
            raise RemoteFailure(
                f"{self._who} {end_of(code)}{_quoted(last_words)}", reason="EXEC_FAILED"
            )
        if not printed.strip():
            raise RemoteFailure(
                f"{self._who} printed no answer{_quoted(last_words)}", reason="BAD_RETURN"
            )
        return checked(decoded(printed, self._who), self._who)

    def close(self) -> None:
        """See Exchange."""


async def _end_what_is_left(process: asyncio.subprocess.Process) -> None:
    """End what a program leaves running when it ends: its answer would never be over."""
    while process.returncode is None:  # noqa: ASYNC110 - its wait() may wait for pipes too
        await asyncio.sleep(_LOOK_EVERY_S)
    await asyncio.sleep(_GRACE_S)
    _kill_group(process.pid)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


async def _write(stdin: Any, line: bytes) -> None:
    # A program need not read what it does not want.
    with contextlib.suppress(OSError):
        stdin.write(line)
        await stdin.drain()
    stdin.close()


async def _read(stdout: Any) -> bytes:
    parts, size = [], 0
    while part := await stdout.read(1 << 16):
        size += len(part)
        # What is too much is read all the same, so that the program can end.
        if size <= MAX_ANSWER_BYTES:
            parts.append(part)
    if size > MAX_ANSWER_BYTES:
        raise RemoteFailure(
            f"it printed {size} bytes, the most is {MAX_ANSWER_BYTES}", reason="BAD_RETURN"
        )
    return b"".join(parts)


async def _show(stderr: Any) -> list[str]:
    """Pass on what is printed to stderr, and return its last lines."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    while part := await stderr.read(1 << 16):
        text = part.decode(errors="replace")
        sys.stderr.write(text)
        sys.stderr.flush()
        last.extend(text.splitlines())
    return list(last)


def _quoted(lines: list[str]) -> str:
    return ": " + " / ".join(lines) if lines else ""
