"""`cbench evaluators`: list the evaluators that a run can be scored with."""

import argparse
from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING

from cbench_server.cli.components import (
    add_listing,
    components,
    option_lines,
    print_components,
    wrapped,
)
from cbench_server.cli.exits import OK
from cbench_server.cli.processes import Process, add_process, named_process
from cbench_server.cli.served import described_evaluators

if TYPE_CHECKING:
    from cbench_client._gen.cbench.v1.evaluator_pb2 import EvaluatorInfo

_OPTIONS_WIDTH = 24
_HEADER = ("Evaluator", "Scores", "Options", "Where", "What it says")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench evaluators`."""
    add_process(parser)
    add_listing(parser, evaluators)


def evaluators(args: argparse.Namespace) -> int:
    """List evaluators of the daemon, or of one process."""
    with named_process(args) as process:
        if process is not None:
            return _list(args, process)
    found = components(args).evaluators
    rows = []
    for info in found:
        names = [option.name for option in info.declared_options.options]
        rows += _rows(info, wrapped(names, _OPTIONS_WIDTH))
    print_components(args, found, _HEADER, rows, {1, 2, 3, 4})
    return OK


def _list(args: argparse.Namespace, process: Process) -> int:
    """List the evaluators of a process, or the one that is asked for, with all of their options."""
    import asyncio  # Here, so that --help does not wait for it.

    from cbench_client.messages.options import declared_options

    described = asyncio.run(described_evaluators(process.target, process.tls, process.token))
    names = [info.name for info in described.evaluators]
    found = [info for info in described.evaluators if process.means(info.name, names)]
    for info in found:
        info.location = process.where
    rows = [row for info in found for row in _rows(info, option_lines(declared_options(info)))]
    print_components(args, found, _HEADER, rows, {1, 2, 3, 4})
    return OK


def _rows(info: "EvaluatorInfo", options: Iterable[str]) -> list[tuple[str, ...]]:
    """Give an evaluator as many lines as its scores and options need."""
    scores = wrapped(score.name for score in info.scores)
    (score, option), *more = zip_longest(scores, options, fillvalue="")
    row = (info.name, score, option, info.location, info.description)
    return [row, *(("", score, option, "", "") for score, option in more)]
