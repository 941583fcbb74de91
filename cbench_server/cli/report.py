"""`cbench report`: a run as a page to open."""

import argparse
import sys
from pathlib import Path

from cbench_client import BenchClient
from cbench_server.cli.connection import connect
from cbench_server.cli.decode import run_of
from cbench_server.cli.exits import OK
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
        page = to_html(report_from(client, run, others=others))
        if args.out == STDOUT:
            write_stdout(page)
            return OK
        path = Path(args.out or file_name(run))
        size = write_file(path, page)
    print(printable(f"{path} ({size_text(size)}): open it in any browser; it needs no network"))
    return OK


def print_page(client: BenchClient, run: Run) -> None:
    """Write the page to stdout; nobody can read it on a terminal, so there it becomes a file."""
    page = to_html(report_from(client, run))
    if not sys.stdout.isatty():
        write_stdout(page)
        return
    path = Path(file_name(run))
    size = write_file(path, page)
    print(printable(f"{path} ({size_text(size)}): open it in any browser; it needs no network"))


def file_name(run: Run) -> str:
    """Name a page after its run."""
    return f"cbench-{run.run_id}.html"
