"""The command line `cbench`: flags in, exit codes out."""

import os
import signal
import sys
import threading
from collections.abc import Sequence

from cbench_server.cli.exits import INTERRUPTED, complain
from cbench_server.cli.exits import report as report_error
from cbench_server.cli.parser import parse


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command and return its exit code."""
    args = parse(list(sys.argv[1:] if argv is None else argv))
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)
    try:
        code: int = args.handler(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        complain("interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough. Python would complain
        # again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except Exception as error:
        return report_error(error)


def _end(number: int, _: object) -> None:
    # As an exception, so that what a command has started is stopped too.
    sys.exit(128 + number)
