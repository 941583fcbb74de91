"""`cbench metrics`: list the metrics that rows can be summarised with."""

import argparse

from cbench_server.cli.components import add_listing, components, print_components
from cbench_server.cli.exits import OK


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench metrics`."""
    add_listing(parser, metrics)


def metrics(args: argparse.Namespace) -> int:
    """List metrics."""
    found = components(args).metrics
    rows = [(info.name, ", ".join(info.keys), info.description) for info in found]
    print_components(args, found, ("Metric", "Keys", "What it says"), rows, {1, 2})
    return OK
