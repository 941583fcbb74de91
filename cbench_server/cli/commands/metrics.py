"""`cbench metrics`: list the metrics that rows can be summarised with."""

import argparse

from cbench_server.cli import options
from cbench_server.cli.components import components, print_components
from cbench_server.cli.exits import OK


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench metrics`."""
    parser.set_defaults(handler=metrics)
    options.add_output(parser)
    options.add_server_flags(parser)


def metrics(args: argparse.Namespace) -> int:
    """List metrics."""
    found = components(args).metrics
    rows = [(info.name, ", ".join(info.keys), info.description) for info in found]
    print_components(args, found, ("Metric", "Keys", "What it says"), rows, {1, 2})
    return OK
