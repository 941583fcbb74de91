"""`cbench score`: score one pair of examples with one evaluator or several."""

import argparse
import json
from typing import Any

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.files import read_text
from cbench_server.cli.screen import print_json


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench score`."""
    parser.set_defaults(handler=score)
    parser.add_argument(
        "--evaluator",
        metavar="NAME",
        dest="evaluators",
        required=True,
        help="an evaluator; see: cbench evaluators; repeatable; of equal scores the last counts",
        **options.REPEATABLE,
    )
    options.add_evaluator_options(parser, "the evaluator")
    parser.add_argument("original", metavar="ORIGINAL", help="a JSON file, or - for stdin")
    parser.add_argument("processed", metavar="PROCESSED", help="a JSON file, or - for stdin")
    parser.add_argument("--details", action="store_true", help="also print what led to the scores")
    options.add_server_flags(parser)


def score(args: argparse.Namespace) -> int:
    """Score a pair and print JSON."""
    from cbench_server.cli.spec import build_evaluators

    if args.original == args.processed == "-":
        raise UsageError("only one of the two can come from stdin.")
    original, processed = _read(args.original), _read(args.processed)
    evaluators = build_evaluators(args.evaluators, args.evaluator_options)
    scores: dict[str, float] = {}
    details: dict[str, Any] = {}
    with connect(args) as client:
        for each in evaluators:
            result = client.score(each["name"], original, processed, each["options"])
            scores.update(result.scores)
            details[each["name"]] = result.details
    if args.details:
        only = details[evaluators[0]["name"]] if len(evaluators) == 1 else details
        print_json({"scores": scores, "details": only})
    else:
        print_json(scores)
    return OK


def _read(path: str) -> dict[str, Any]:
    name = "stdin" if path == "-" else path
    try:
        example = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{name}, line {error.lineno}, column {error.colno}: not JSON: {error.msg}."
        ) from error
    if not isinstance(example, dict):
        raise UsageError(f"{name} is not a JSON object; write an example as {{...}}.")
    return example
