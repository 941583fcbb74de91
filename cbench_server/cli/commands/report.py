"""`cbench report`: write a run as one page to open in a browser."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import OK
from cbench_server.cli.files import STDOUT, write_file, write_stdout
from cbench_server.cli.outcome import add_json
from cbench_server.cli.screen import print_json
from cbench_server.cli.stored_runs import find_run, find_run_id

if TYPE_CHECKING:
    from collections.abc import Iterable


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench report`."""
    parser.set_defaults(handler=report)
    options.add_run_id(parser)
    parser.add_argument(
        "--compare",
        metavar="RUN",
        help="compare with the systems of this run too, example by example; repeatable",
        **options.REPEATABLE,
    )
    options.add_group_by(parser, "show the score of each group of rows")
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        help="where to write, - for stdout (default: cbench-RUN.html in this folder)",
    )
    add_json(parser)
    options.add_server_flags(parser)


def report(args: argparse.Namespace) -> int:
    """Write the page, and say where it is."""
    from cbench_server.cli.output import page_name

    with connect(args) as client:
        run = find_run(client, args.run)
        page = client.report(
            run.run_id,
            compare_run_ids=[find_run_id(client, name) for name in args.compare],
            group_by=args.group_by,
        )
        if args.out == STDOUT:
            write_stdout(page)
        else:
            _write(args, page, args.out or page_name(run))
    return OK


def _write(args: argparse.Namespace, page: "Iterable[bytes]", path: str) -> None:
    from cbench_server.cli.output import write_page

    if args.output == "json":
        write_file(path, page)
        print_json({"file": path, "bytes": Path(path).stat().st_size})
    else:
        write_page(page, path)
