"""Programs that compare symbols, asked from any thread."""

import atexit
import functools
import json
import os
import signal
import sys
from dataclasses import dataclass

from cbench_server.errors import EvaluatorBroken
from cbench_server.models.blocking import run_blocking
from cbench_server.scoring.programs import Lost, ProgramPool

# Only a program that neither works nor ends takes this long.
_TIMEOUT_S = 50.0
_COMMAND = (sys.executable, "-P", "-m", "cbench_server.evaluators.math.symbols")
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
        # Where a worker scores, they share its group, and are killed with it.
        self._programs = ProgramPool(_COMMAND, size, timeout=_TIMEOUT_S, is_apart=False)

    def compare(self, gold: str, given: str, *, is_response: bool = False) -> Verdict:
        """Compare two answers in LaTeX; with `is_response` the second is looked for in a text.

        Raises EvaluatorBroken if the program cannot be started, or is ended
        twice by something other than what it was given.
        """
        request = [gold, given, self._cpu_seconds, is_response]
        return run_blocking(self._compare(json.dumps(request).encode()))

    def close(self) -> None:
        """End all programs."""
        run_blocking(self._programs.close())

    async def _compare(self, request: bytes) -> Verdict:
        for _ in range(2):
            try:
                reply = json.loads(await self._programs.exchange(request))
            except OSError as error:
                raise EvaluatorBroken(
                    f"the program that compares symbols cannot be started: {error}"
                ) from error
            except Lost as error:
                if verdict := self._post_mortem(error.code):
                    return verdict
                lost = error
            else:
                return Verdict(bool(reply["equal"]), str(reply["reason"]))
        raise EvaluatorBroken(f"the program that compares symbols {lost}, twice") from lost

    def _post_mortem(self, code: int | None) -> Verdict | None:
        """Return the verdict on answers that ended the program; None if they did not."""
        if code == -signal.SIGPROF:
            return Verdict(False, f"not compared within {self._cpu_seconds:g} s of processor time")
        if code is not None and -code in _CRASHES:
            return Verdict(False, "the comparison crashed")
        return None


# Known by the process id: a forked process must not talk over its parent's pipes.
@functools.cache
def _programs(pid: int) -> MathPrograms:
    programs = MathPrograms()
    atexit.register(lambda: programs.close() if os.getpid() == pid else None)
    return programs


def compare_symbols(gold: str, given: str) -> Verdict:
    """Compare two answers in LaTeX with the programs of this process."""
    return _programs(os.getpid()).compare(gold, given)


def verify_response(gold: str, response: str) -> Verdict:
    """Compare an answer in LaTeX with the one that math-verify finds in a response."""
    return _programs(os.getpid()).compare(gold, response, is_response=True)
