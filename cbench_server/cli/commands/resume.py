"""`cbench resume`: continue a cancelled or failed run where it stopped."""

import argparse

from cbench_server.cli import options
from cbench_server.cli.connect import connect, server_of, token_of
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.outcome import inform
from cbench_server.cli.prices import dollars
from cbench_server.cli.stored_runs import find_run


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench resume`."""
    parser.set_defaults(handler=resume)
    options.add_run_id(parser)
    parser.add_argument(
        "--detach", action="store_true", help="do not follow the run; only with --server"
    )
    parser.add_argument(
        "--budget-usd",
        metavar="USD",
        type=dollars,
        help="the most that the run may cost in all, in the place of the budget it was started "
        "with; a run that its budget has stopped goes on only with more",
    )
    options.add_launch_timeout(parser)
    options.add_output(parser)
    options.add_quiet(parser)
    options.add_server_flags(parser)


def resume(args: argparse.Namespace) -> int:
    """Continue a run, with what was launched and served for it, and follow it."""
    from cbench_server.cli.follow import conclude
    from cbench_server.cli.launches import launching
    from cbench_server.spec import RunState

    if args.detach and not server_of(args):
        raise UsageError("--detach needs --server: a daemon inside this process ends with it.")
    with (
        launching(quiet=args.quiet, patience=args.launch_timeout, token=token_of(args)) as launches,
        connect(args, evaluates=True) as client,
    ):
        stopped = find_run(client, args.run)
        run_id = stopped.run_id
        if stopped.state is not RunState.SUCCEEDED and launches.start_again(run_id):
            if args.detach:
                raise UsageError(
                    "--detach cannot be used here: systems or models of this run were started by a "
                    "command, and end with it."
                )
            launches.wait()
        client.resume(run_id, budget_usd=args.budget_usd)
        if args.detach:
            inform(args, f"resumed {run_id}; follow it with: cbench watch {run_id}")
            return OK
        # Earlier events end with an earlier finish, which is not the one to wait for.
        events = client.watch(run_id, stopped.last_seq, include_rows=False)
        return conclude(client, events, args, run_id=run_id, launches=launches)
