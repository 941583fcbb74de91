"""`cbench report`: a run as a page to open."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from cbench_client import BenchClient
from cbench_server.cli.connection import connect
from cbench_server.cli.decode import run_of
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.naming import find_run
from cbench_server.cli.reporting import report_from
from cbench_server.cli.writing import STDOUT, size_text, write_file, write_stdout
from cbench_server.reports.grid import printable
from cbench_server.reports.page import to_html
from cbench_server.spec import Run


def report(args: argparse.Namespace) -> int:
    """Write the page, and say where it is."""
    with connect(args) as client:
        run, *others = (
            run_of(client.get(find_run(client, name))) for name in (args.run, *args.compare)
        )
        if any(other.run_id == run.run_id for other in others):
            raise UsageError(
                f"--compare {run.run_id} is the run itself; its systems are compared anyway."
            )
        page = to_html(report_from(client, run, others=others))
        if args.out == STDOUT:
            write_stdout(page)
        else:
            _write(page, args.out or file_name(run))
    return OK


def print_page(client: BenchClient, run: Run) -> None:
    """Write the page to stdout; nobody can read it on a terminal, so there it becomes a file."""
    page = to_html(report_from(client, run))
    if sys.stdout.isatty():
        _write(page, file_name(run))
    else:
        write_stdout(page)


def _write(page: Iterable[str], path: str) -> None:
    size = size_text(write_file(Path(path), page))
    print(printable(f"{path} ({size}): open it in any browser; it needs no network"))


def file_name(run: Run) -> str:
    """Name a page after its run."""
    return f"cbench-{run.run_id}.html"
