"""The flags of `cbench report` and `cbench export`."""

from typing import Any

from cbench_server.cli.parser import Subparsers, command

_RUN_HELP = "a run's id, the beginning of one, or `last`"


def add_report(commands: Subparsers, add_server_flags: Any) -> None:
    """Add `cbench report`."""
    parser = command(
        commands, "report", "report:report", "Write a run as one page to open in a browser"
    )
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument(
        "--compare",
        metavar="RUN",
        action="append",
        default=[],
        help="compare with the systems of this run too, example by example; repeatable",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        help="where to write, - for stdout (default: cbench-RUN.html in this folder)",
    )
    add_server_flags(parser)


def add_export(commands: Subparsers, add_server_flags: Any) -> None:
    """Add `cbench export`."""
    parser = command(
        commands, "export", "export:export", "Write a run with its rows for other programs"
    )
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="markdown, json, jsonl, csv, parquet, junit, html or a registered reporter "
        "(default: by FILE's suffix)",
    )
    parser.add_argument(
        "-o", "--out", metavar="FILE", default="-", help="where to write (default: stdout)"
    )
    add_server_flags(parser)
