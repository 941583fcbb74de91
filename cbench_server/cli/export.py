"""`cbench export`: a run in a format for other programs."""

import argparse
import sys
from pathlib import Path

from cbench_server.cli.connection import connect
from cbench_server.cli.decode import run_of
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.naming import find_run
from cbench_server.cli.reporting import report_from
from cbench_server.cli.writing import STDOUT, size_text, write_file, write_stdout
from cbench_server.registry import registry
from cbench_server.reports.grid import printable
from cbench_server.reports.reporters import SUFFIXES

_BINARY = frozenset({"parquet"})


def export(args: argparse.Namespace) -> int:
    """Write the run, to stdout unless a file is named."""
    with connect(args) as client:
        # Only now is what --import registers there to be named.
        name = _format(args.format, args.out)
        reporter = registry.get("reporter", name)
        if args.out == STDOUT and name in _BINARY and sys.stdout.isatty():
            raise UsageError(f"{name} is not text for a terminal; pass -o FILE.")
        parts = reporter(report_from(client, run_of(client.get(find_run(client, args.run)))))
        if args.out == STDOUT:
            write_stdout(parts)
            return OK
        path = Path(args.out)
        size = write_file(path, parts)
    print(printable(f"{path} ({size_text(size)})"), file=sys.stderr)
    return OK


def _format(wanted: str | None, out: str) -> str:
    if wanted:
        return wanted
    suffix = Path(out).suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(registry.list("reporter"))
        what = "stdout has no suffix" if out == STDOUT else f'"{out}" has no known suffix'
        raise UsageError(f"{what} to tell a format by; pass --format. Known: {known}.")
    return SUFFIXES[suffix]
