"""`cbench compare`: systems of one run, or of two, example by example."""

import argparse
from dataclasses import replace

from cbench_server.cli.connection import connect
from cbench_server.cli.decode import run_of
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.naming import find_run
from cbench_server.cli.run_differences import run_differences
from cbench_server.cli.screen import draw, print_json, print_parts
from cbench_server.cli.sides import pairs_across, pairs_in, rows_of, shown_as
from cbench_server.comparison import compare as compare_rows
from cbench_server.reports.comparison import to_dict, to_markdown, to_table


def compare(args: argparse.Namespace) -> int:
    """Compare, and say what can be claimed."""
    if args.other and args.baseline:
        raise UsageError("--baseline names a system of one run; with two runs use --systems A,B.")
    with connect(args) as client:
        run = run_of(client.get(find_run(client, args.run)))
        notes: tuple[str, ...] = ()
        if args.other:
            other = run_of(client.get(find_run(client, args.other)))
            pairs = pairs_across(run, other, args.systems)
            notes = tuple(run_differences(run, other))
        else:
            pairs = pairs_in(run, args.systems, args.baseline)
        names = shown_as(pairs)
        found = compare_rows(
            {name: rows_of(client, side) for side, name in names.items()},
            pairs=[(names[a], names[b]) for a, b in pairs],
            score_field=args.score_field or run.spec.score_field or None,
            threshold=run.spec.threshold,
            effect=args.effect / 100,
            seed=run.spec.seed,
        )
    found = replace(found, notes=(*notes, *found.notes))
    if args.output == "json":
        print_json(to_dict(found))
    elif args.output == "markdown":
        print_parts([to_markdown(found, args.flips)])
    else:
        print_parts([to_table(found, draw, args.flips)])
    return OK
