"""`cbench compare`: compare systems of one or two runs, example by example."""

import argparse

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import OK
from cbench_server.cli.screen import draw, print_json
from cbench_server.cli.stored_runs import find_run
from cbench_server.cli.values import names, number, whole_number


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench compare`."""
    parser.set_defaults(handler=compare)
    options.add_run_id(parser)
    parser.add_argument(
        "other",
        metavar="OTHER",
        nargs="?",
        help="a second run, whose systems of the same name are compared with those of the first",
    )
    parser.add_argument(
        "--systems",
        metavar="A,B",
        action="extend",
        type=names,
        default=[],
        help="only these systems; with two runs, one of each (default: all of them)",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        default="",
        help="compare every other system of the run with this one only",
    )
    parser.add_argument(
        "--score-field",
        metavar="NAME",
        help="the score to compare (default: the one that counts for each row)",
    )
    options.add_group_by(parser, "also compare on each group of examples")
    parser.add_argument(
        "--effect",
        metavar="POINTS",
        type=_points,
        default=2.0,
        help="the smallest difference that matters, in points; the output says how many examples "
        "are needed to see it (default: 2)",
    )
    parser.add_argument(
        "--flips",
        metavar="N",
        type=_count,
        default=10,
        help="list at most this many examples that only one of two systems passes (default: 10)",
    )
    options.add_output(parser, ("table", "markdown", "json"))
    options.add_server_flags(parser)


def _points(text: str) -> float:
    points = number(text)
    if points <= 0:
        raise argparse.ArgumentTypeError(f'"{text}" is not above 0; write points such as 2 or 0.5.')
    return points


def _count(text: str) -> int:
    count = whole_number(text)
    if count < 0:
        raise argparse.ArgumentTypeError(f'"{text}" is below 0; write a whole number such as 10.')
    return count


def compare(args: argparse.Namespace) -> int:
    """Compare, and say what can be claimed."""
    from cbench_server.reports.comparison import to_dict, to_markdown, to_table
    from cbench_server.rpc.comparisons import comparison_from_proto

    with connect(args) as client:
        run = find_run(client, args.run)
        other = find_run(client, args.other) if args.other else None
        found = comparison_from_proto(
            client.compare(
                run.run_id,
                other.run_id if other else "",
                systems=args.systems,
                baseline=args.baseline,
                score_field=args.score_field or "",
                group_by=args.group_by,
                effect=args.effect / 100,
            )
        )
    if args.output == "json":
        print_json(to_dict(found))
    elif args.output == "markdown":
        print(to_markdown(found, args.flips), end="")
    else:
        print(to_table(found, draw, args.flips), end="")
    return OK
