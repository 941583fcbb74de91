"""How a command ends: exit codes, and every error as one line."""

import difflib
import os
import sys
import traceback
from collections.abc import Iterable

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130

EXIT_CODES = {
    OK: "done; failed rows and low scores are results, not errors",
    FAILED: "the run failed or was cancelled, a gate did not hold, or something could not be "
    "reached or used",
    USAGE: "bad usage or bad input, such as an unknown name or a broken line in a file",
    INTERRUPTED: "interrupted with Ctrl-C; rows are kept",
}

# gRPC's names for "what you asked for is at fault".
_INPUT_CODES = frozenset({"INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "OUT_OF_RANGE"})

# The client library speaks of its own arguments; these are the flags for them,
# which differ for a connection to the daemon and one to a system.
_FLAGS = {
    "Pass tls=True or tls=Tls(...).": "Pass {tls}, or {ca} FILE for an authority of your own.",
    "Pass tls=True, or tls=Tls(ca_pem=...) for a certificate of your own.": (
        "Pass {tls}, or {ca} FILE for an authority of your own."
    ),
    "Drop tls, or check the port.": "Drop {tls} and {ca}, or check the port.",
    "Pass its authority as Tls(ca_pem=...), or the name in it as Tls(server_name=...).": (
        "Pass its authority with {ca} FILE."
    ),
    "pass Tls(cert_pem=..., key_pem=...).": "pass --tls-cert FILE and --tls-key FILE.",
    "Pass token=...": "Pass {token}.",
}
_DAEMON = {"tls": "--tls", "ca": "--tls-ca", "token": "--token, or set CBENCH_TOKEN"}
_SYSTEM = {"tls": "--system-tls", "ca": "--system-ca", "token": "--credential NAME"}


class UsageError(Exception):
    """The command line, or a file it names, asks for something that cannot be done."""


class CommandFailed(Exception):
    """The command could not do its work."""


def explain(error: BaseException) -> tuple[int, str] | None:
    """Return the exit code and the message of an expected error, None for a bug."""
    # Imported here so that usage errors and --help need neither.
    from cbench_client.errors import ClientError, Refused
    from cbench_server import errors

    if isinstance(error, UsageError):
        return USAGE, str(error)
    if isinstance(error, CommandFailed):
        return FAILED, str(error)
    if isinstance(error, Refused):
        code = USAGE if error.code in _INPUT_CODES else FAILED
        # What a daemon cannot reach is a system.
        return code, in_system_flags(str(error))
    if isinstance(error, ClientError):
        return (USAGE if isinstance(error, ValueError) else FAILED), _in_flags(str(error), _DAEMON)
    if isinstance(error, errors.NotFound | errors.InvalidInput):
        return USAGE, str(error)
    if isinstance(error, errors.CbenchError):
        return FAILED, str(error)
    if isinstance(error, OSError) and error.filename:
        return FAILED, f"{error.filename}: {error.strerror}."
    return None


def in_system_flags(message: str) -> str:
    """Say in the flags for systems what the client library says in arguments."""
    return _in_flags(message, _SYSTEM)


def _in_flags(message: str, flags: dict[str, str]) -> str:
    for argument, advice in _FLAGS.items():
        message = message.replace(argument, advice.format(**flags))
    return message


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


def complain(message: str) -> None:
    """Print a line on stderr under our name."""
    from cbench_server.reports.grid import printable

    print(f"cbench: {printable(message)}", file=sys.stderr)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the nearest known name, empty if none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f' Did you mean "{near[0]}"?' if near else ""
