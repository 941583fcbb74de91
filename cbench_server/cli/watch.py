"""`cbench watch` and `cbench resume`."""

import argparse
import sys

from cbench_client import BenchClient
from cbench_server.cli.connection import connect, server_of
from cbench_server.cli.exits import INTERRUPTED, OK, UsageError
from cbench_server.cli.follow import Interrupted, follow, sum_up_interruption
from cbench_server.cli.naming import find_run
from cbench_server.cli.output import exit_code, print_run
from cbench_server.cli.run import print_row


def watch(args: argparse.Namespace) -> int:
    """Follow a run; leaving it does not stop it."""
    with connect(args) as client:
        run_id = find_run(client, args.run)
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
            print(f"the run goes on; stop it with: cbench cancel {run_id}", file=sys.stderr)
            return INTERRUPTED
        print_run(client, run, args.output, with_rows=False)
        return exit_code(run)


def resume(args: argparse.Namespace) -> int:
    """Take a run up again, and follow it."""
    if args.detach and not server_of(args):
        raise UsageError("--detach needs --server: a daemon inside this process ends with it.")
    with connect(args) as client:
        run_id = find_run(client, args.run)
        before = client.get(run_id).last_sequence
        client.resume(run_id)
        if args.detach:
            print(f"resumed {run_id}; follow it with: cbench watch {run_id}", file=sys.stderr)
            return OK
        return _follow_resumed(client, run_id, before, args)


def _follow_resumed(client: BenchClient, run_id: str, before: int, args: argparse.Namespace) -> int:
    # Earlier events end with an earlier finish, which is not the one to wait for.
    events = client.watch(run_id, before, include_rows=False)
    try:
        run = follow(client, events, run_id=run_id, quiet=args.quiet)
    except Interrupted as interruption:
        return sum_up_interruption(interruption.run)
    print_run(client, run, args.output, with_rows=False)
    return exit_code(run)
