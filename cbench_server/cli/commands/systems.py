"""`cbench systems`: list the systems of the daemon, or those that one process serves."""

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from cbench_server.cli import options
from cbench_server.cli.components import (
    add_listing,
    components,
    message_to_dict,
    option_lines,
    print_components,
)
from cbench_server.cli.connect import pem
from cbench_server.cli.exits import OK, CommandFailed, UsageError
from cbench_server.cli.screen import draw, print_json
from cbench_server.cli.served import describe
from cbench_server.texts.grid import Grid

if TYPE_CHECKING:
    from cbench_client import Tls
    from cbench_client.messages.options import DeclaredOptions
    from cbench_client.remote.description import SystemDescription

_HEADER = ("System", "Version", "Where", "Options", "What it does")
_LEFT = {1, 2, 3, 4}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench systems`."""
    parser.add_argument(
        "--system", metavar="TARGET", help="list what the process at HOST:PORT serves"
    )
    parser.add_argument(
        "--launch", metavar="COMMAND", help="list what this program serves; it is ended afterwards"
    )
    options.add_launch_timeout(parser)
    parser.add_argument(
        "--credential",
        metavar="NAME",
        default="",
        help="the name of the credential in the configuration whose value the --system gets",
    )
    options.add_system_tls(parser, "connect to the --system")
    add_listing(parser, systems)


def systems(args: argparse.Namespace) -> int:
    """List systems of the daemon, or of one process."""
    from cbench_client.messages.options import declared_options

    if args.system or args.launch:
        return _served_systems(args)
    if args.credential:
        raise UsageError("--credential needs --system.")
    found = components(args)
    rows = [
        row
        for note, infos in (("", found.systems), (", memory", found.memory_systems))
        for each in infos
        for row in _rows(each, f"{each.location}{note}", declared_options(each))
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


def _served_systems(args: argparse.Namespace) -> int:
    from cbench_client import Tls
    from cbench_client.remote.peer import split_target

    if args.system and args.launch:
        raise UsageError("--system and --launch name two processes; list them one after the other.")
    if args.launch and args.credential:
        raise UsageError("--credential needs --system.")
    if args.launch:
        from cbench_server.cli.launches import launching

        with launching(quiet=True, patience=args.launch_timeout) as launches:
            launches.start(args.launch)
            return _list(args, launches.wait()[0].target, args.launch)
    target, served = split_target(args.system)
    secured = args.system_tls or args.system_ca
    tls = Tls(ca_pem=pem(args.system_ca)) if secured else None
    return _list(args, target, target, tls, served, _token(args.credential, target))


def _token(credential: str, target: str) -> str | None:
    """Return what a system of the user's own configuration gets as its token."""
    if not credential:
        return None
    from cbench_server.daemon.settings import load_settings
    from cbench_server.rpc.credentials import Credentials

    return Credentials(load_settings({}).credential_table()).secret(credential, target)


def _list(
    args: argparse.Namespace,
    target: str,
    where: str,
    tls: "Tls | None" = None,
    served: str | None = None,
    token: str | None = None,
) -> int:
    """List the systems and memory systems of a process, or the one that is asked for."""
    import asyncio  # Here, so that --help does not wait for it.

    shown = [
        (each, note)
        for each, note in asyncio.run(_described(target, tls, token))
        if served in (None, each.name)
    ]
    if args.output == "json":
        print_json([{**_plain(each), "location": where + note} for each, note in shown])
    else:
        rows = tuple(
            row for each, note in shown for row in _rows(each, where + note, each.declared)
        )
        print(draw(Grid(_HEADER, rows, frozenset(_LEFT))))
    return OK


async def _described(
    target: str, tls: "Tls | None", token: str | None
) -> "list[tuple[SystemDescription, str]]":
    """Ask a process for both kinds; it serves one of them at least."""
    found: list[tuple[SystemDescription, str]] = []
    refusals: list[CommandFailed] = []
    for kind, note in (("process", ""), ("memory", ", memory")):
        try:
            found += [(each, note) for each in await describe(target, kind, tls, token)]
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
