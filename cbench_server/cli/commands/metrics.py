"""`cbench metrics`: list the metrics that rows can be summarised with."""

import argparse

from cbench_server.cli.components import add_listing, components, print_components, wrapped
from cbench_server.cli.exits import OK


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench metrics`."""
    add_listing(parser, metrics)


def metrics(args: argparse.Namespace) -> int:
    """List metrics."""
    from cbench_server.reports.columns import main_keys

    found = components(args).metrics
    rows = []
    for info in found:
        # What every estimate has is said once, below.
        lines = wrapped(main_keys({info.name: info.keys}))
        rows.append((info.name, lines[0], info.description))
        rows += [("", line, "") for line in lines[1:]]
    print_components(args, found, ("Metric", "Keys", "What it says"), rows, {1, 2})
    if args.output != "json":
        print("\nMeans and ratios also have KEY_stderr, KEY_ci_low and KEY_ci_high.")
    return OK
