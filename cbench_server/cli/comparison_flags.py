"""The flags of `cbench compare` and `cbench gate`."""

import argparse
from typing import Any

from cbench_server.cli.parser import Subparsers, command
from cbench_server.cli.values import number, whole_number
from cbench_server.comparison.policies import GRAMMAR

_RUN_HELP = "a run's id, the beginning of one, or `last`"

_FORMS = "\n".join(f"  {form}" for form in GRAMMAR)
_POLICIES = f"""\
policies:
{_FORMS}

METRIC is a score such as f1, or: score (the one that counts), pass rate, failures,
context tokens, context compression, cost, mean latency, p50 latency, p95 latency,
p99 latency. VALUE is a number, or one with points or %; times need us, ms, s or min;
against a baseline % is relative to it. The end of the 95% interval that is worse for the run
decides, unless the policy ends with "as measured".
"""


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f'"{text}" is no list of names; write it as A,B.')
    return names


def _points(text: str) -> float:
    points = number(text)
    if points <= 0:
        raise argparse.ArgumentTypeError(f'"{text}" is not above 0.')
    return points


def _count(text: str) -> int:
    count = whole_number(text)
    if count < 0:
        raise argparse.ArgumentTypeError(f'"{text}" is below 0.')
    return count


def add_compare(commands: Subparsers, add_server_flags: Any) -> None:
    """Add `cbench compare`."""
    parser = command(commands, "compare", "compare:compare", "Compare systems example by example")
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument(
        "other",
        metavar="OTHER",
        nargs="?",
        help="a second run, whose systems of the same name are compared with those of the first",
    )
    parser.add_argument(
        "--systems",
        metavar="A,B",
        type=_names,
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
    parser.add_argument(
        "--effect",
        metavar="POINTS",
        type=_points,
        default=2.0,
        help="the difference worth seeing, in points, for which to say how many examples it "
        "takes (default: 2)",
    )
    parser.add_argument(
        "--flips",
        metavar="N",
        type=_count,
        default=10,
        help="list at most this many examples that only one of two passes (default: 10)",
    )
    parser.add_argument(
        "--output",
        choices=("table", "markdown", "json"),
        default="table",
        help="what to print on stdout (default: table)",
    )
    add_server_flags(parser)


def add_gate(commands: Subparsers, add_server_flags: Any) -> None:
    """Add `cbench gate`."""
    parser = command(
        commands,
        "gate",
        "gate:gate",
        "Check a run against policies, for CI: exit code 0 if all hold, else 1",
        epilog=_POLICIES,
    )
    parser.add_argument("run", metavar="RUN", help=_RUN_HELP)
    parser.add_argument(
        "--policy",
        metavar="TEXT",
        dest="policies",
        action="append",
        default=[],
        help='what must hold, such as "f1 not worse than baseline by more than 1 point"; '
        "repeatable",
    )
    parser.add_argument(
        "--policy-file",
        metavar="FILE",
        dest="policy_files",
        action="append",
        default=[],
        help="policies one a line, or as a list `policies` in a .toml file; repeatable",
    )
    parser.add_argument("--system", metavar="NAME", default="", help="the system to check")
    parser.add_argument("--baseline", metavar="RUN", help="the run to compare with")
    parser.add_argument(
        "--baseline-system",
        metavar="NAME",
        default="",
        help="the system to compare with, of the run itself without --baseline "
        "(default: the one of the same name, or the only one)",
    )
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML, too")
    parser.add_argument(
        "--output",
        choices=("text", "json"),
        default="text",
        help="what to print on stdout (default: text)",
    )
    add_server_flags(parser)
