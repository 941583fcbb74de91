"""Programs that compare symbols: asked from any thread, replaced when one is lost."""

import atexit
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from cbench_server.errors import EvaluatorBroken
from cbench_server.scoring.programs import HEADER_BYTES, body_length, environment, frame

# Only a program that neither works nor ends takes this long.
_PATIENCE_S = 50.0
_PROGRAM = Path(__file__).with_name("symbols.py")
# Ends that the compared answers bring about; any other is our failure.
_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether two answers agree, and why there was no telling."""

    equal: bool
    reason: str = ""


class MathPrograms:
    """Programs kept for comparing, at most `size` at work at a time; safe for threads.

    A comparison may take `cpu_seconds` of processor time. It is not the time on
    the clock that counts, so that a busy machine does not change verdicts.
    """

    def __init__(self, size: int | None = None, cpu_seconds: float = 4.0) -> None:
        self._cpu_seconds = cpu_seconds
        self._permits = threading.BoundedSemaphore(size or min(os.cpu_count() or 1, 8))
        self._lock = threading.Lock()
        self._idle: list[_Program] = []

    def compare(self, gold: str, given: str) -> Verdict:
        """Compare two answers in LaTeX.

        Raises EvaluatorBroken if the program cannot be started, or is ended
        twice by something other than what it was given.
        """
        with self._permits:
            try:
                return self._compare(gold, given)
            except _Lost:
                pass
            try:
                return self._compare(gold, given)
            except _Lost as lost:
                raise EvaluatorBroken(f"the program that compares symbols {lost}, twice") from lost

    def close(self) -> None:
        """End the programs that are idle."""
        with self._lock:
            programs, self._idle = self._idle, []
        for program in programs:
            program.end()

    def _compare(self, gold: str, given: str) -> Verdict:
        program = self._take()
        try:
            verdict = program.compare(gold, given)
        except BaseException:
            program.end()
            raise
        if program.is_alive:
            with self._lock:
                self._idle.append(program)
        return verdict

    def _take(self) -> "_Program":
        while True:
            with self._lock:
                program = self._idle.pop() if self._idle else None
            if program is None:
                return _Program(self._cpu_seconds)
            if program.is_alive:
                return program
            program.end()


class _Lost(Exception):
    """The program ended, or fell silent, through no fault of the answers; says how."""


class _Program:
    """One program, which does one comparison at a time."""

    def __init__(self, cpu_seconds: float) -> None:
        self._cpu_seconds = cpu_seconds
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
            )
        except OSError as error:
            raise EvaluatorBroken(
                f"the program that compares symbols cannot be started: {error}"
            ) from error

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def compare(self, gold: str, given: str) -> Verdict:
        try:
            reply = self._exchange(json.dumps([gold, given, self._cpu_seconds]).encode())
        except (OSError, EOFError) as error:
            return self._post_mortem(error)
        return Verdict(bool(reply["equal"]), str(reply["reason"]))

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                # What could not be written is of no interest any more.
                with contextlib.suppress(OSError):
                    pipe.close()

    def _exchange(self, body: bytes) -> dict[str, object]:
        assert self._process.stdin is not None
        self._process.stdin.write(frame(body))
        self._process.stdin.flush()
        length = body_length(self._read(HEADER_BYTES))
        reply: dict[str, object] = json.loads(self._read(length))
        return reply

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            data = b""
            while len(data) < size:
                if not selector.select(_PATIENCE_S):
                    raise _Lost(f"did not answer within {_PATIENCE_S:g} s")
                piece = os.read(self._process.stdout.fileno(), size - len(data))
                if not piece:
                    raise EOFError
                data += piece
        return data

    def _post_mortem(self, error: Exception) -> Verdict:
        code = self._process.wait()
        self.end()
        if code == -signal.SIGPROF:
            return Verdict(False, f"not compared within {self._cpu_seconds:g} s of processor time")
        if -code in _CRASHES:
            return Verdict(False, "the comparison crashed")
        raise _Lost(f"ended with {code}") from error


_programs = MathPrograms()
atexit.register(lambda: _programs.close())


def _forget() -> None:
    # A forked process must not talk over its parent's pipes.
    global _programs
    _programs = MathPrograms()


os.register_at_fork(after_in_child=_forget)


def compare_symbols(gold: str, given: str) -> Verdict:
    """Compare two answers in LaTeX with the programs of this process."""
    return _programs.compare(gold, given)
