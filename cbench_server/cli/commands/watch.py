"""`cbench watch`: follow a run to its end."""

import argparse

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import INTERRUPTED
from cbench_server.cli.outcome import inform
from cbench_server.cli.stored_runs import find_run


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench watch`."""
    parser.set_defaults(handler=watch)
    options.add_run_id(parser)
    note = "; jsonl prints every row from the first"
    options.add_output(parser, ("table", "json", "jsonl"), note)
    options.add_quiet(parser)
    options.add_server_flags(parser)


def watch(args: argparse.Namespace, *, with_gate: bool = False) -> int:
    """Follow a run; leaving it does not stop it."""
    from cbench_server.cli.follow import conclude
    from cbench_server.cli.run_files.gates import at_end, gate_of

    with connect(args) as client:
        run = find_run(client, args.run)
        run_id, gate = run.run_id, gate_of(run) if with_gate else {}
        streams_rows = args.output == "jsonl"
        events = client.watch(run_id, include_rows=streams_rows)
        try:
            return conclude(
                client,
                events,
                args,
                run_id=run_id,
                streams_rows=streams_rows,
                cancels=False,
                at_end=at_end(gate, args.output),
            )
        except KeyboardInterrupt:
            inform(args, f"the run continues; stop it with: cbench cancel {run_id}")
            return INTERRUPTED
