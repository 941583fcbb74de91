"""Guards one program on a node: `python guard.py WORDS...`, until it or its own stdin ends.

An actor can be killed at any moment, and what it had started must not outlive it. This program
uses nothing but the standard library, so that it starts in no time.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    # Where this program is killed itself; other systems than Linux have only the pipe.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _main(words: list[str]) -> None:
    try:
        program = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_parent
        )
    except OSError as error:
        sys.exit(f"cannot start {words[0]}: {error.strerror}")

    def end(number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, number)

    def watch() -> None:
        while os.read(0, 1):
            pass
        end(signal.SIGKILL)

    signal.signal(signal.SIGTERM, lambda number, _: end(number))
    threading.Thread(target=watch, daemon=True).start()
    code = program.wait()
    end(signal.SIGKILL)
    # As shells tell of signals, since a number below zero is no exit code.
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    _main(sys.argv[1:])
