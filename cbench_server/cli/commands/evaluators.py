"""`cbench evaluators`: list the evaluators that a run can be scored with."""

import argparse
from itertools import zip_longest

from cbench_server.cli.components import add_listing, components, print_components, wrapped
from cbench_server.cli.exits import OK

_OPTIONS_WIDTH = 24


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench evaluators`."""
    add_listing(parser, evaluators)


def evaluators(args: argparse.Namespace) -> int:
    """List evaluators."""
    found = components(args).evaluators
    rows = []
    for info in found:
        scores = wrapped(score.name for score in info.scores)
        names = [option.name for option in info.declared_options.options]
        options = wrapped(names, _OPTIONS_WIDTH)
        rows.append((info.name, scores[0], options[0], info.location, info.description))
        more = zip_longest(scores[1:], options[1:], fillvalue="")
        rows += [("", score, option, "", "") for score, option in more]
    header = ("Evaluator", "Scores", "Options", "Where", "What it says")
    print_components(args, found, header, rows, {1, 2, 3, 4})
    return OK
