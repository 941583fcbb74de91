"""Killable programs: a pool of them, what they are told, and the frames in which it travels.

A frame is a 4-byte length, big-endian, and that many bytes. Programs are
started by exec, never forked from this process nor run by multiprocessing:
grpc does not survive a fork, one killed member of a process pool breaks all of
it, and spawning runs scripts without a main guard again.
"""

import asyncio
import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import BinaryIO, NoReturn

from cbench_server.clocks.standstill import time_awake
from cbench_server.errors import ShuttingDown
from cbench_server.scoring.shares import FairPermits

MAX_BODY = 128 * 1024 * 1024

_HEADER_BYTES = 4
# A program imports for seconds, and for a minute where many start at once.
_START_S = 300.0
_PIECE_BYTES = 2**20
# No other variable reaches a program: evaluators need no secrets.
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "LD_LIBRARY_PATH")


class Lost(Exception):
    """A program ended before it answered; says how."""

    def __init__(self, how: str, code: int | None = None) -> None:
        super().__init__(how)
        self.code = code
        """What it ended with by itself, negative for a signal; None if it was silent."""


class ProgramPool:
    """Up to `size` programs, started when they are needed and kept.

    While one caller holds all of them, up to `spare` more serve those who hold none.
    One that dies, or takes longer than `timeout` seconds once it has started, costs its own
    request only. With `is_apart` a program is killed with all that it started; without,
    it is in the group of this process, and is killed with that. Belongs to one
    event loop.
    """

    def __init__(
        self,
        command: Sequence[str],
        size: int | None = None,
        *,
        timeout: float,
        spare: int = 0,
        is_apart: bool = True,
    ) -> None:
        self._command = command
        self._permits = FairPermits(size or min(os.cpu_count() or 1, 8), spare)
        self._timeout = timeout
        self._is_apart = is_apart
        self._programs: set[_Program] = set()
        self._idle: list[_Program] = []
        self._ending: set[asyncio.Task[int]] = set()
        self._closed = False

    async def exchange(self, request: bytes | Callable[[], bytes]) -> bytes:
        """Return a program's reply; raises Lost, and ShuttingDown once the pool is closed."""
        async with self._permits.one():
            if callable(request):
                request = request()
            program = await self._take()
            try:
                async with asyncio.timeout(_START_S):
                    await program.started()
                async with time_awake(self._timeout):
                    reply = await program.exchange(request)
            except TimeoutError as error:
                self._discard(program)
                limit = self._timeout if program.has_started else _START_S
                raise Lost(f"did not answer within {limit:g} s") from error
            except (asyncio.IncompleteReadError, OSError) as error:
                # What it died of stands by now: being killed once more does not change it.
                raise Lost("died", await self._discard(program)) from error
            except BaseException:
                # Its answer to a request that was given up would be taken for another's.
                self._discard(program)
                raise
            self._idle.append(program)
            return reply

    async def close(self) -> None:
        """Kill every program and wait until none is left; requests that wait are refused."""
        self._closed = True
        for program in [*self._programs]:
            self._discard(program)
        while self._ending:
            await asyncio.wait(self._ending)

    async def _take(self) -> "_Program":
        while self._idle:
            program = self._idle.pop()
            if program.is_alive:
                return program
            self._discard(program)
        if not self._closed:
            program = await self._start()
            if not self._closed:
                return program
            self._discard(program)
        raise ShuttingDown("the pool of programs is closed")

    async def _start(self) -> "_Program":
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(),
            start_new_session=self._is_apart,
            # Reading never pauses, so that a killed program's pipes always reach their end.
            limit=MAX_BODY,
        )
        program = _Program(process, self._is_apart)
        self._programs.add(program)
        return program

    def _discard(self, program: "_Program") -> "asyncio.Task[int]":
        """Kill a program; the task ends when it has, with its exit code."""
        if program in self._programs:
            self._programs.discard(program)
            if program in self._idle:
                self._idle.remove(program)
            program.kill()
        task = asyncio.create_task(program.wait())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task


class _Program:
    """One program, which does one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process, is_apart: bool) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._replies = process.stdout
        self._kill = os.killpg if is_apart else os.kill
        self.wait = process.wait
        self.has_started = False

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def started(self) -> None:
        """Wait for the empty frame with which a program says that it is there."""
        if not self.has_started:
            await self._replies.readexactly(_HEADER_BYTES)
            self.has_started = True

    async def exchange(self, request: bytes) -> bytes:
        self._requests.write(header(request))
        rest = memoryview(request)
        while rest:
            # What is written at once is copied as far as the pipe does not take it.
            self._requests.write(rest[:_PIECE_BYTES])
            await self._requests.drain()
            rest = rest[_PIECE_BYTES:]
        return await read_frame(self._replies, MAX_BODY)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self._kill(self._process.pid, signal.SIGKILL)
        self._requests.close()


def environment() -> dict[str, str]:
    """Return the variables of a program, which finds the same modules as this process."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return passed | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


async def read_frame(frames: asyncio.StreamReader, most: int | None = None) -> bytes:
    """Return the next body; raises IncompleteReadError at the end, OSError beyond `most` bytes."""
    length = int.from_bytes(await frames.readexactly(_HEADER_BYTES), "big")
    if most is not None and length > most:
        raise OSError(f"a reply of {length:,} bytes")
    return await frames.readexactly(length)


def header(body: bytes) -> bytes:
    """Return what goes before a body."""
    return len(body).to_bytes(_HEADER_BYTES, "big")


# The other side: what a program does.


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return where requests come from and replies go.

    From now on nothing else that is printed or read here, or in a child, reaches them.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, replies


def serve(pipes: tuple[BinaryIO, BinaryIO], answer: Callable[[bytes], bytes]) -> NoReturn:
    """Answer requests, one at a time and in order, until the other side is gone."""
    requests, replies = pipes
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, inbox), daemon=True).start()
    body = b""  # Says that it has started.
    while True:
        replies.write(header(body) + body)
        replies.flush()
        body = answer(inbox.get())


def _read(requests: BinaryIO, inbox: "queue.SimpleQueue[bytes]") -> None:
    # In a thread, to notice the end at once, even while an answer is being worked out.
    while length := requests.read(_HEADER_BYTES):
        inbox.put(requests.read(int.from_bytes(length, "big")))
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)
