"""`cbench evaluators`: list the evaluators that a run can be scored with."""

import argparse

from cbench_server.cli.components import add_listing, components, print_components
from cbench_server.cli.exits import OK


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench evaluators`."""
    add_listing(parser, evaluators)


def evaluators(args: argparse.Namespace) -> int:
    """List evaluators."""
    found = components(args).evaluators
    rows = [
        (info.name, ", ".join(score.name for score in info.scores), info.location, info.description)
        for info in found
    ]
    header = ("Evaluator", "Scores", "Where", "What it says")
    print_components(args, found, header, rows, {1, 2, 3})
    return OK
