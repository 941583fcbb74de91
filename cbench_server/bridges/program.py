"""A program that is kept running: it reads a request per line and prints an answer per line.

Answers may come in any order; they are told apart by their id. What the
program prints to stderr goes where ours does.
"""

import asyncio
import contextlib
import itertools
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any

from cbench_client import RemoteFailure
from cbench_server.bridges.exchange import (
    MAX_ANSWER_BYTES,
    Message,
    called,
    checked,
    decoded,
    encoded,
    id_of,
    shown,
)

# After this long without any answer, whoever forgot to flush wants to know.
_SILENT_S = 10.0
_UNBUFFERED = (
    "If it has answered, its answers are kept in its buffer: most programs print at once only to "
    "a terminal. Have it flush (jq --unbuffered, awk's fflush(), python -u, sed -u; mawk also "
    "reads ahead without -W interactive), or use --exec-mode once."
)


class Program:
    """A program and the calls that it has not answered yet.

    Args:
        words: The command.
        ended: Called in a thread with how it ended; by default it is started
            again at the next call, and calls in progress fail.
    """

    def __init__(
        self, words: Sequence[str], ended: Callable[[str, int], None] | None = None
    ) -> None:
        self._words = list(words)
        self._who = called(words)
        self._ended = ended
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._given_up: set[int] = set()
        self._answered = 0
        self._has_hinted = False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def start(self) -> None:
        """Start it, unless it runs; raises OSError."""
        with self._lock:
            if self._process is not None:
                return
            self._process = subprocess.Popen(
                self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            self._lines = queue.SimpleQueue()
            self._answered = 0
            for work in (self._read, self._write):
                threading.Thread(
                    target=work, args=(self._process, self._lines), name="cbench-exec", daemon=True
                ).start()

    async def ask(self, request: Message) -> Message:
        """See Exchange."""
        place = next(self._ids)
        line = encoded({"id": place, **request})
        try:
            self.start()
        except OSError as error:
            raise RemoteFailure(
                f"{self._who} cannot be started: {error.strerror}", reason="NOT_READY"
            ) from error
        answer: Future[Any] = Future()
        with self._lock:
            self._waiting[place] = answer
            answered, process = self._answered, self._process
        self._lines.put(line)
        hint = asyncio.get_running_loop().call_later(_SILENT_S, self._hint)
        try:
            return checked(await asyncio.wrap_future(answer), self._who)
        except asyncio.CancelledError:
            self._give_up(place, answered, process)
            raise
        finally:
            hint.cancel()

    def _hint(self) -> None:
        """Say once why a program that has never answered may seem silent."""
        if not self._answered and not self._has_hinted:
            self._has_hinted = True
            print(f"{self._who} has not answered yet. {_UNBUFFERED}", file=sys.stderr, flush=True)

    def _give_up(
        self, place: int, answered: int, process: "subprocess.Popen[bytes] | None"
    ) -> None:
        """Forget a call that was made when there were `answered` answers of a process.

        One that has answered before, and nothing since, hangs: every later call would wait behind
        this one. One that has never answered may still be starting.
        """
        with self._lock:
            if self._waiting.pop(place, None) is not None:
                self._given_up.add(place)
            hangs = 0 < self._answered == answered and self._process is process
        self._hint()
        if hangs and process is not None:
            print(
                f"{self._who} has answered nothing since a request whose time is over, and is "
                "ended, so that others do not wait for it",
                file=sys.stderr,
                flush=True,
            )
            process.kill()

    def close(self) -> None:
        """See Exchange."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            self._lines.put(None)
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2)
            process.kill()
            process.wait()

    def _write(
        self, process: "subprocess.Popen[bytes]", lines: "queue.SimpleQueue[bytes | None]"
    ) -> None:
        stdin: Any = process.stdin
        # What cannot be written any more is not read: its end is noticed by the other thread.
        with contextlib.suppress(OSError):
            while (line := lines.get()) is not None:
                stdin.write(line)
                stdin.flush()
        with contextlib.suppress(OSError):
            stdin.close()

    def _read(
        self, process: "subprocess.Popen[bytes]", lines: "queue.SimpleQueue[bytes | None]"
    ) -> None:
        stdout: Any = process.stdout
        while line := stdout.readline(MAX_ANSWER_BYTES + 1):
            if len(line) > MAX_ANSWER_BYTES:
                print(
                    f"{self._who} printed a line of more than {MAX_ANSWER_BYTES} bytes, and is "
                    "ended",
                    file=sys.stderr,
                )
                process.kill()
                break
            if line.strip():
                self._take(line)
        stdout.close()
        lines.put(None)
        self._bury(process)

    def _take(self, line: bytes) -> None:
        """Give an answer to the call that waits for it."""
        failure = None
        place: int | None = None
        answer: Any = None
        try:
            answer = decoded(line, self._who)
            place = id_of(answer)
        except RemoteFailure as error:
            failure = error
        with self._lock:
            self._answered += 1
            if place in self._given_up:
                self._given_up.discard(place)
                return
            if place not in self._waiting:
                # Programs that answer wrongly mostly answer in order: the oldest call has waited
                # for this.
                place = next(iter(self._waiting), None)
                failure = failure or RemoteFailure(
                    f"{self._who} printed a line without the id of a call in progress: "
                    f"{shown(line)}. An answer has the id of its request.",
                    reason="BAD_RETURN",
                )
            waiting = self._waiting.pop(place, None) if place is not None else None
        if waiting is None:
            print(
                f"{self._who} printed a line that answers nothing: {shown(line)}", file=sys.stderr
            )
            return
        # Its caller may have gone meanwhile.
        with contextlib.suppress(InvalidStateError):
            if failure is None:
                waiting.set_result(answer)
            else:
                waiting.set_exception(failure)

    def _bury(self, process: "subprocess.Popen[bytes]") -> None:
        """Fail what the program has left unanswered."""
        code = process.wait()
        with self._lock:
            was_closed = self._process is not process
            if not was_closed:
                self._process = None
            lost, self._waiting = self._waiting, {}
            self._given_up.clear()
            answered = self._answered
        how = end_of(code)
        if code == 0 and answered == 1:
            how += ", after one answer. A program that answers one request needs --exec-mode once"
        if self._ended is not None and not was_closed:
            self._ended(f"{self._who} {how}", code)
        for waiting in lost.values():
            with contextlib.suppress(InvalidStateError):
                waiting.set_exception(
                    RemoteFailure(
                        f"{self._who} {how}", reason="UNAVAILABLE", retryable=not was_closed
                    )
                )


def end_of(code: int) -> str:
    """Say how a process ended."""
    if code < 0:
        return f"was killed by signal {-code} ({signal.Signals(-code).name})"
    return f"ended with exit code {code}"


def shell_exit_code(code: int) -> int:
    """Return the exit code by which a shell tells of an end."""
    return 128 - code if code < 0 else code


def leave(how: str, code: int) -> None:
    """End this process with the program that it is a bridge to, so that it is started again."""
    print(how, file=sys.stderr, flush=True)
    os._exit(shell_exit_code(code))
