"""The command line `cbench`: flags in, exit codes out."""

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence

# Read when gRPC is loaded: it would log what a command says of a handshake in a sentence.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

from cbench_server.cli.exits import INTERRUPTED, complain
from cbench_server.cli.exits import report as report_error
from cbench_server.cli.parser import parse
from cbench_server.cli.signals import leave_if_told, obey_signals
from cbench_server.durable import failpoints


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command and return its exit code."""
    failpoints.arm()
    args = parse(list(sys.argv[1:] if argv is None else argv))
    if threading.current_thread() is threading.main_thread():
        obey_signals()
    code = _carry_out(args)
    leave_if_told(code)
    return code


def _carry_out(args: argparse.Namespace) -> int:
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
    except SystemExit as end:
        return int(end.code or 0)
    except Exception as error:
        return report_error(error)
