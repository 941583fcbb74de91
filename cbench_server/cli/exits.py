"""Exit codes, and errors as one line each."""

import difflib
import errno
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbench_client.errors import ClientError

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130

EXIT_CODES = {
    OK: "done; failed rows and low scores are results, not errors",
    FAILED: "the run failed or was cancelled, every row of it failed, a gate did not hold, or "
    "something could not be reached or used",
    USAGE: "bad usage or bad input, such as an unknown name or a broken line in a file",
    INTERRUPTED: "interrupted with Ctrl-C; rows are kept",
    128 + signal.SIGPIPE: "whoever read the output left before its end, as `| head` does",
    128 + signal.SIGTERM: "ended by SIGTERM; rows are kept",
}

# Of a file that output goes to; no file is named in such errors.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

# gRPC codes that mean the request itself is wrong.
_INPUT_CODES = frozenset({"INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "OUT_OF_RANGE"})

# The client library's errors carry a code for the way out, which is a flag here: one for the
# connection to the daemon, another for connections to systems.
DAEMON_ADVICE = {
    "USE_TLS": "Pass --tls, or --tls-ca FILE for your own authority.",
    "DROP_TLS": "Drop --tls and --tls-ca, or check the port.",
    "TRUST_AUTHORITY": "Pass its authority with --tls-ca FILE.",
    "PRESENT_CERTIFICATE": (
        "If it asks for a client certificate, pass --tls-cert FILE and --tls-key FILE."
    ),
    "PRESENT_TOKEN": "Pass --token, or set CBENCH_TOKEN.",
}
SYSTEM_ADVICE = {
    "USE_TLS": "Pass --system-tls, or --system-ca FILE for your own authority.",
    "DROP_TLS": "Drop --system-tls and --system-ca, or check the port.",
    "TRUST_AUTHORITY": "Pass its authority with --system-ca FILE.",
    "PRESENT_CERTIFICATE": (
        "If it asks for a client certificate, let it accept callers without one: "
        "cbench has none to present."
    ),
    "PRESENT_TOKEN": "Pass --credential NAME.",
}


class UsageError(Exception):
    """The command line, or a file it names, asks for something that cannot be done."""


class CommandFailed(Exception):
    """The command could not do its work."""


def explain(error: BaseException) -> tuple[int, str] | None:
    """Return the exit code and the message of an expected error, None for a bug."""
    # Imported here so that usage errors and --help need neither.
    from cbench_client.errors import ClientError, Refused
    from cbench_server import errors
    from cbench_server.rpc import advice

    if isinstance(error, UsageError):
        return USAGE, str(error)
    if isinstance(error, CommandFailed):
        return FAILED, str(error)
    if isinstance(error, Refused):
        code = USAGE if error.code in _INPUT_CODES else FAILED
        # A refusal about a connection is about the daemon's connection to a system, but for the
        # token that the daemon itself asks for.
        is_ours = error.code == "UNAUTHENTICATED"
        told = in_flags(error, DAEMON_ADVICE if is_ours else SYSTEM_ADVICE)
        if code_of_advice := error.metadata.get(advice.KEY, ""):
            fields = advice.FIELD_ADVICE.get(code_of_advice, "")
            told = told.removesuffix(fields) + SYSTEM_ADVICE.get(code_of_advice, fields)
        return code, _with_flags(_by_flag(told, error.field), error.metadata.get("flags", ""))
    if isinstance(error, ClientError):
        code = USAGE if isinstance(error, ValueError) else FAILED
        return code, in_flags(error, DAEMON_ADVICE)
    if isinstance(error, errors.NotFound | errors.InvalidInput):
        return USAGE, _with_flags(_by_flag(str(error), error.field), error.flags)
    if isinstance(error, errors.CbenchError):
        return FAILED, str(error)
    if isinstance(error, OSError) and error.filename:
        code = USAGE if error.errno == errno.ENAMETOOLONG else FAILED
        return code, f"{error.filename}: {error.strerror}."
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return FAILED, f"what is printed cannot be written: {error.strerror}."
    return None


def in_flags(error: "ClientError", advice: Mapping[str, str]) -> str:
    """Give the message of the client library with the advice in our flags."""
    if error.advice not in advice:
        return str(error)
    return f"{error.problem} {advice[error.advice]}"


def _by_flag(message: str, field: str) -> str:
    """Name the flag that was given where a message begins with the field that it fills."""
    name = field.rpartition(".")[2].partition("[")[0]
    flag = f"--{name.replace('_', '-')}"
    was_given = any(word.partition("=")[0] == flag for word in sys.argv)
    rest = message.removeprefix(name)
    return flag + rest if name and was_given and rest[:1] in (" ", ":") else message


def _with_flags(message: str, flags: str) -> str:
    return f"{message} {flags}" if flags else message


def report(error: BaseException) -> int:
    """Print an error as one line on stderr, and return the exit code."""
    if os.environ.get("CBENCH_DEBUG"):
        traceback.print_exception(error)
    explained = explain(error)
    if explained is None:
        kind = type(error).__name__
        complain(f"{kind}: {error}. This is a bug in cbench; CBENCH_DEBUG=1 shows where.")
        return FAILED
    code, message = explained
    complain(message)
    return code


def complaint(message: str) -> str:
    """Return a message as the line that is printed: ours, safe for a terminal and not of pages."""
    from cbench_server.errors import shortened
    from cbench_server.texts.grid import printable

    return f"cbench: {printable(shortened(message))}"


def complain(message: str) -> None:
    """Print a line on stderr that begins with `cbench:`."""
    print(complaint(message), file=sys.stderr)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the nearest known name, empty if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f' Did you mean "{near[0]}"?' if near else ""
