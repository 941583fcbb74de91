"""The flags of `cbench conformance`."""

from typing import Any

from cbench_server.cli.parser import Subparsers, command
from cbench_server.cli.values import duration


def add_conformance(commands: Subparsers) -> None:
    """Add `cbench conformance`."""
    parser = command(
        commands,
        "conformance",
        "conformance:conformance",
        "Check that a process keeps the contract, whatever its language",
        epilog="After -- comes the command that starts the process; it prints "
        "cbench|1|tcp|HOST:PORT.",
    )
    parser.add_argument(
        "program",
        metavar="COMMAND",
        nargs="*",
        help="after `--`: the command to start what is checked, with its arguments",
    )
    for name, what in (
        ("system", "systems"),
        ("memory", "memory systems"),
        ("evaluator", "evaluators"),
    ):
        parser.add_argument(f"--{name}", metavar="TARGET", help=f"check the {what} at HOST:PORT")
    _add_selection(parser)
    _add_connection(parser)


def _add_selection(parser: Any) -> None:
    parser.add_argument(
        "--only",
        metavar="PATTERN",
        action="append",
        default=[],
        help="only cases under this path, such as system/unary or '*/cancel/*'; repeatable",
    )
    parser.add_argument("--list", action="store_true", help="list the cases, and check nothing")
    parser.add_argument(
        "--known-failing",
        metavar="FILE",
        help="cases that may fail, one to a line, with the reason after a #; one that passes "
        "after all fails the check",
    )
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        default=30.0,
        help="what one case may take (default: 30s)",
    )
    parser.add_argument(
        "--output",
        choices=("table", "json"),
        default="table",
        help="what to print on stdout (default: table)",
    )
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit report as well")


def _add_connection(parser: Any) -> None:
    group = parser.add_argument_group("connection to TARGET")
    group.add_argument("--token", help="the bearer token the process wants")
    group.add_argument("--tls", action="store_true", help="connect over TLS")
    group.add_argument(
        "--tls-ca", metavar="FILE", help="likewise, trusting the certificates in this PEM file"
    )
