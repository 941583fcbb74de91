"""Flags that say how programs of `--exec` and web servers of `--http` are asked."""

import argparse

from cbench_server.cli.values import duration, positive_int


def add_bridge_flags(group: argparse._ActionsContainer) -> None:
    """Add how programs of `--exec` and servers of `--http` are asked."""
    group.add_argument(
        "--exec-mode",
        choices=("stream", "once"),
        default="stream",
        help="stream: the program of --exec runs on, a request per line; once: it is started for "
        "every request (default: stream)",
    )
    group.add_argument(
        "--exec-concurrency",
        metavar="N",
        type=positive_int,
        help="the most requests that a program of --exec is given at once (default: the run "
        "finds out; with --exec-mode once, as many as there are cores)",
    )
    group.add_argument(
        "--http-concurrency",
        metavar="N",
        type=positive_int,
        help="the most requests in progress at a server of --http (default: the run finds out)",
    )
    group.add_argument(
        "--http-batch",
        metavar="N",
        type=positive_int,
        default=1,
        help="send up to N requests together, as a list (default: 1, an object by itself)",
    )
    group.add_argument(
        "--http-timeout",
        metavar="SECONDS",
        type=duration,
        help="how long a server of --http may take for one POST (default: --timeout decides)",
    )
    group.add_argument(
        "--http-token-env",
        metavar="VARIABLE",
        default="",
        help="the environment variable with the bearer token for servers of --http",
    )
