"""`cbench score`: score one pair of examples with one evaluator."""

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
        "--evaluator", metavar="NAME", required=True, help="an evaluator; see: cbench evaluators"
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
    [evaluator] = build_evaluators([args.evaluator], args.evaluator_options)
    with connect(args) as client:
        result = client.score(evaluator["name"], original, processed, evaluator["options"])
    if args.details:
        print_json({"scores": result.scores, "details": result.details})
    else:
        print_json(result.scores)
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
