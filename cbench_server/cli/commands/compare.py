"""`cbench compare`: compare systems of one or two runs, example by example."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.screen import draw, print_json
from cbench_server.cli.stored_runs import check_system, find_run, rows_of, run_differences
from cbench_server.cli.values import names, number, whole_number

if TYPE_CHECKING:
    from cbench_server.spec import Run

Side = tuple[str, str]
"""A run's id and a system of it."""


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
        type=names,
        default=(),
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
    from cbench_server.reports.report import compared_by_judges

    if args.other and args.baseline:
        raise UsageError("--baseline names a system of one run; with two runs use --systems A,B.")
    with connect(args) as client:
        run = find_run(client, args.run)
        notes: tuple[str, ...] = ()
        if args.other:
            other = find_run(client, args.other)
            pairs = _pairs_across(run, other, args.systems)
            notes = tuple(run_differences(run, other))
        else:
            pairs = _pairs_in(run, args.systems, args.baseline)
        shown = _shown_as(pairs)
        found = compared_by_judges(
            {
                name: rows_of(client, run_id, system=system)
                for (run_id, system), name in shown.items()
            },
            run,
            pairs=[(shown[a], shown[b]) for a, b in pairs],
            score_field=args.score_field or None,
            effect=args.effect / 100,
        )
    found = replace(found, notes=(*notes, *found.notes))
    if args.output == "json":
        print_json(to_dict(found))
    elif args.output == "markdown":
        print(to_markdown(found, args.flips), end="")
    else:
        print(to_table(found, draw, args.flips), end="")
    return OK


def _pairs_in(run: "Run", systems: Sequence[str], baseline: str) -> list[tuple[Side, Side]]:
    """Pair the systems of one run: every two of them, or each with the baseline."""
    chosen = [check_system(run, name) for name in systems] or list(run.systems)
    if baseline:
        check_system(run, baseline)
        others = [name for name in chosen if name != baseline]
        pairs = [(name, baseline) for name in others]
    else:
        pairs = list(combinations(dict.fromkeys(chosen), 2))
    if not pairs:
        raise UsageError(
            f"run {run.run_id} has one system to compare, {', '.join(chosen)}. Name a second run, "
            "or another of its systems with --systems."
        )
    return [((run.run_id, a), (run.run_id, b)) for a, b in pairs]


def _pairs_across(a: "Run", b: "Run", systems: Sequence[str]) -> list[tuple[Side, Side]]:
    """Pair systems of two runs: those named, those of the same name, or the only ones."""
    if a.run_id == b.run_id:
        raise UsageError(
            f"both runs are {a.run_id}. Name it once to compare its systems with each other."
        )
    if len(systems) == 2 and systems[0] in a.systems and systems[1] in b.systems:
        return [((a.run_id, systems[0]), (b.run_id, systems[1]))]
    if len(systems) > 1:
        raise UsageError(
            f"with two runs --systems takes one of each: one of {', '.join(a.systems)} of "
            f"{a.run_id}, and one of {', '.join(b.systems)} of {b.run_id}."
        )
    if systems:
        return [((a.run_id, check_system(a, systems[0])), (b.run_id, check_system(b, systems[0])))]
    shared = [name for name in a.systems if name in b.systems]
    if not shared and len(a.systems) == len(b.systems) == 1:
        return [((a.run_id, a.systems[0]), (b.run_id, b.systems[0]))]
    if not shared:
        raise UsageError(
            f"runs {a.run_id} ({', '.join(a.systems)}) and {b.run_id} ({', '.join(b.systems)}) "
            "share no system. Say which two to compare with --systems A,B."
        )
    return [((a.run_id, name), (b.run_id, name)) for name in shared]


def _shown_as(pairs: Sequence[tuple[Side, Side]]) -> dict[Side, str]:
    """Name each side by its system, and by its run where two have the same name."""
    sides = list(dict.fromkeys(side for pair in pairs for side in pair))
    systems = [system for _, system in sides]
    return {
        (run_id, system): system if systems.count(system) == 1 else f"{system} ({run_id})"
        for run_id, system in sides
    }
