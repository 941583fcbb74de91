"""`cbench export`: write a run in a format for other programs."""

import argparse
import sys
from pathlib import Path

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.files import STDOUT, write_file, write_stdout
from cbench_server.cli.stored_runs import find_run, report_from


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench export`."""
    parser.set_defaults(handler=export)
    options.add_run_id(parser)
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="markdown, json, jsonl, csv, parquet, junit, html, swebench or a registered reporter "
        "(default: by FILE's suffix)",
    )
    parser.add_argument(
        "-o", "--out", metavar="FILE", default="-", help="where to write (default: stdout)"
    )
    options.add_server_flags(parser)


def export(args: argparse.Namespace) -> int:
    """Write the run, to stdout unless a file is named."""
    from cbench_server.cli.output import check_terminal
    from cbench_server.registry import registry
    from cbench_server.texts.grid import printable

    with connect(args) as client:
        # After connect(), which imports the modules of --import with their reporters.
        name = args.format or _format(args.out)
        reporter = registry.get("reporter", name)
        if args.out == STDOUT:
            check_terminal(name, "pass -o FILE")
        parts = reporter(report_from(client, find_run(client, args.run)))
        if args.out == STDOUT:
            write_stdout(parts)
            return OK
        size = write_file(args.out, parts)
    print(printable(f"{args.out} ({size})"), file=sys.stderr)
    return OK


def _format(out: str) -> str:
    """Return the format that belongs to a file's suffix."""
    from cbench_server.registry import registry
    from cbench_server.reports.formats import SUFFIXES

    suffix = Path(out).suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(registry.list("reporter"))
        what = "stdout has no suffix" if out == STDOUT else f'"{out}" has no known suffix'
        raise UsageError(f"{what}; pass --format. Known: {known}.")
    return SUFFIXES[suffix]
