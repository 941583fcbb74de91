"""`cbench systems`: list the systems of the daemon, or all that one process serves."""

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from cbench_server.cli.components import (
    add_listing,
    components,
    message_to_dict,
    option_lines,
    print_components,
)
from cbench_server.cli.exits import OK, CommandFailed
from cbench_server.cli.processes import Process, add_process, named_process
from cbench_server.cli.screen import draw, print_json
from cbench_server.cli.served import describe
from cbench_server.texts.grid import Grid

if TYPE_CHECKING:
    from cbench_client.messages.options import DeclaredOptions
    from cbench_client.remote.description import SystemDescription

_HEADER = ("System", "Version", "Where", "Options", "What it does")
_LEFT = {1, 2, 3, 4}
_KINDS = {"process": "", "memory": ", memory", "evaluator": ", evaluator"}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench systems`."""
    add_process(parser)
    add_listing(parser, systems)


def systems(args: argparse.Namespace) -> int:
    """List systems of the daemon, or what one process serves."""
    with named_process(args) as process:
        if process is not None:
            return _list(args, process)
    from cbench_client.messages.options import declared_options

    found = components(args)
    rows = [
        row
        for kind, infos in (("process", found.systems), ("memory", found.memory_systems))
        for each in infos
        for row in _rows(each, f"{each.location}{_KINDS[kind]}", declared_options(each))
    ]
    print_components(args, [*found.systems, *found.memory_systems], _HEADER, rows, _LEFT)
    return OK


def _rows(
    each: Any, where: str, declared: "DeclaredOptions | None"
) -> list[tuple[str, str, str, str, str]]:
    """Give a system one line, and one more for each further option."""
    first, *others = option_lines(declared)
    row = (each.name, each.version, where, first, each.description)
    return [row, *(("", "", "", line, "") for line in others)]


def _list(args: argparse.Namespace, process: Process) -> int:
    """List the components of a process, or the one that is asked for."""
    import asyncio  # Here, so that --help does not wait for it.

    found = asyncio.run(_described(process))
    names = [each.name for each, _ in found]
    shown = [
        (each, process.where + note) for each, note in found if process.means(each.name, names)
    ]
    if args.output == "json":
        print_json([{**_plain(each), "location": where} for each, where in shown])
    else:
        rows = tuple(row for each, where in shown for row in _rows(each, where, each.declared))
        print(draw(Grid(_HEADER, rows, frozenset(_LEFT))))
    return OK


async def _described(process: Process) -> "list[tuple[SystemDescription, str]]":
    """Ask a process for all kinds; it serves one of them at least."""
    found: list[tuple[SystemDescription, str]] = []
    refusals: list[CommandFailed] = []
    for kind, note in _KINDS.items():
        try:
            served = await describe(process.target, kind, process.tls, process.token)
            found += [(each, note) for each in served]
        except CommandFailed as error:
            refusals.append(error)
    if not found and refusals:
        raise refusals[0]
    return found


def _plain(each: "SystemDescription") -> dict[str, Any]:
    """Give what a system says of itself as plain data."""
    from cbench_client._gen.cbench.v1 import option_pb2
    from cbench_client.messages.options import options_to_proto

    options = None
    if each.declared is not None:
        message = option_pb2.DeclaredOptions()
        options_to_proto(each.declared, message)
        options = message_to_dict(message)
    return {**asdict(replace(each, declared=None)), "declared": options}
