"""`cbench attach`: follow a run that was left to a daemon, to its table and its gate."""

import argparse

from cbench_server.cli.commands import watch


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench attach`."""
    watch.add_flags(parser)
    parser.set_defaults(handler=attach)


def attach(args: argparse.Namespace) -> int:
    """Follow a run, and check what its run file says must hold."""
    return watch.watch(args, with_gate=True)
