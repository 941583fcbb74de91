"""`cbench watch`: follow a run to its end."""

import argparse
import sys

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import INTERRUPTED
from cbench_server.cli.stored_runs import find_run


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench watch`."""
    parser.set_defaults(handler=watch)
    options.add_run_id(parser)
    note = "; jsonl prints every row from the first"
    options.add_output(parser, ("table", "json", "jsonl"), note)
    options.add_quiet(parser)
    options.add_server_flags(parser)


def watch(args: argparse.Namespace) -> int:
    """Follow a run; leaving it does not stop it."""
    from cbench_server.cli.follow import follow
    from cbench_server.cli.output import exit_code, print_row, print_run

    with connect(args) as client:
        run_id = find_run(client, args.run).run_id
        rows_wanted = args.output == "jsonl"
        events = client.watch(run_id, include_rows=rows_wanted)
        try:
            run = follow(
                client,
                events,
                run_id=run_id,
                quiet=args.quiet,
                on_row=print_row if rows_wanted else None,
                cancels=False,
            )
        except KeyboardInterrupt:
            print(f"the run continues; stop it with: cbench cancel {run_id}", file=sys.stderr)
            return INTERRUPTED
        if not rows_wanted:
            print_run(client, run, args.output, with_rows=False)
    return exit_code(run)
