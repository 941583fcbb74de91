"""`cbench cancel`: stop a run and keep its rows."""

import argparse

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import OK
from cbench_server.cli.outcome import add_json, tell
from cbench_server.cli.stored_runs import find_run_id, run_of


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench cancel`."""
    parser.set_defaults(handler=cancel)
    options.add_run_id(parser)
    add_json(parser)
    options.add_server_flags(parser)


def cancel(args: argparse.Namespace) -> int:
    """Stop a run."""
    from cbench_server.reports.json_report import run_to_dict
    from cbench_server.reports.table import state_line

    with connect(args) as client:
        run = run_of(client.cancel(find_run_id(client, args.run)))
    tell(args, run_to_dict(run), state_line(run))
    return OK
