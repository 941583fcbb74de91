"""Connections to a daemon: the one at --server, or one inside this process."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbench_server.cli.exits import UsageError
from cbench_server.cli.outcome import is_quiet

if TYPE_CHECKING:
    from cbench_client import BenchClient, Tls


def add_connection_flags(parser: Any) -> Any:
    """Add the flags that say where a daemon is and how to reach it; return their group."""
    group = parser.add_argument_group("daemon")
    group.add_argument(
        "--server",
        metavar="HOST:PORT",
        help="the daemon to use, or several of one store with commas, also from CBENCH_SERVER "
        "(default: one inside this process, on the same store)",
    )
    group.add_argument(
        "--token", help="the token that the daemon asks for; better passed in CBENCH_TOKEN"
    )
    group.add_argument("--tls", action="store_true", help="connect to the daemon over TLS")
    group.add_argument(
        "--tls-ca",
        metavar="FILE",
        help="connect to the daemon over TLS and trust the certificates in this PEM file",
    )
    group.add_argument(
        "--tls-cert",
        metavar="FILE",
        help="the client certificate to present to the daemon, as a PEM file, for mutual TLS",
    )
    group.add_argument(
        "--tls-key", metavar="FILE", help="the private key of --tls-cert, as a PEM file"
    )
    return group


def server_of(args: argparse.Namespace) -> str:
    """Return the daemon's address, empty for one inside this process."""
    return str(args.server or os.environ.get("CBENCH_SERVER", ""))


def token_of(args: argparse.Namespace) -> str:
    """Return the token for the daemon, empty where none is given."""
    return str(args.token or os.environ.get("CBENCH_TOKEN", ""))


@contextmanager
def connect(args: argparse.Namespace, *, evaluates: bool = False) -> Iterator["BenchClient"]:
    """Open a client while the context lasts; an embedded daemon drains at its end.

    `evaluates` says that a run is about to begin.
    """
    if server := server_of(args):
        theirs = {
            "--import": args.imports[0] if args.imports else None,
            "--data-dir": args.data_dir,
            "--sandbox": args.sandbox,
        }
        for flag, value in theirs.items():
            if value:
                raise UsageError(
                    f"{flag} only works without --server. Start the daemon at {server} with "
                    f"{flag} {value} instead."
                )
        from cbench_client import BenchClient

        with BenchClient(server, tls=tls_of(args), token=token_of(args) or None) as client:
            yield client
        return
    check_no_server(args)
    with ExitStack() as stack:
        with _starting(args):
            # Imported here, so that --help does not wait for gRPC.
            from cbench_client import BenchClient
            from cbench_server.daemon.embedded import embedded

            inside = embedded(
                imports=args.imports,
                data_dir=args.data_dir,
                sandbox=args.sandbox,
                evaluates=evaluates,
            )
            client = stack.enter_context(BenchClient(stack.enter_context(inside)))
            client.is_of_this_version = True
        yield client


def check_no_server(args: argparse.Namespace) -> None:
    """Refuse flags that say how to reach a daemon where none is named."""
    for flag in ("tls", "tls_ca", "tls_cert", "tls_key", "token"):
        if getattr(args, flag):
            raise UsageError(f"--{flag.replace('_', '-')} needs --server.")


@contextmanager
def _starting(args: argparse.Namespace) -> Iterator[None]:
    """Show a person that something happens while a daemon starts in this process."""
    is_log = not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or os.environ.get("CI")
    if is_quiet(args) or is_log:
        yield
        return
    print("starting ...", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def tls_of(args: argparse.Namespace) -> "Tls | None":
    """Return how to secure the connection to the daemon."""
    from cbench_client import Tls

    if bool(args.tls_cert) != bool(args.tls_key):
        raise UsageError("--tls-cert and --tls-key belong together; pass both.")
    if not (args.tls or args.tls_ca or args.tls_cert):
        return None
    return Tls(ca_pem=pem(args.tls_ca), cert_pem=pem(args.tls_cert), key_pem=pem(args.tls_key))


def system_tls(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return how to secure connections to systems, in the form of a spec."""
    if not (args.system_tls or args.system_ca):
        return None
    return {"ca_pem": (pem(args.system_ca) or b"").decode("ascii", "replace")}


def pem(path: str | None) -> bytes | None:
    """Read a PEM file."""
    if path is None:
        return None
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}.") from error
    if b"-----BEGIN" not in text:
        raise UsageError(f"{path} does not contain PEM text.")
    return text
