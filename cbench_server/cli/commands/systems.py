"""`cbench systems`: list the systems of the daemon, or those that one process serves."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from cbench_server.cli import options
from cbench_server.cli.components import add_listing, components, print_components
from cbench_server.cli.connect import pem
from cbench_server.cli.exits import OK, SYSTEM_ADVICE, CommandFailed, in_flags
from cbench_server.cli.screen import draw, print_json
from cbench_server.texts.grid import Grid

if TYPE_CHECKING:
    from cbench_client.remote.description import SystemDescription

_HEADER = ("System", "Version", "Where", "What it does")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench systems`."""
    parser.add_argument(
        "--system", metavar="TARGET", help="list what the process at HOST:PORT serves"
    )
    options.add_system_tls(parser, "connect to the --system")
    add_listing(parser, systems)


def systems(args: argparse.Namespace) -> int:
    """List systems of the daemon, or of one process."""
    if args.system:
        return _served_systems(args)
    found = components(args)
    rows = [
        *((each.name, each.version, each.location, each.description) for each in found.systems),
        *(
            (each.name, each.version, f"{each.location}, memory", each.description)
            for each in found.memory_systems
        ),
    ]
    print_components(args, [*found.systems, *found.memory_systems], _HEADER, rows, {1, 2, 3})
    return OK


def _served_systems(args: argparse.Namespace) -> int:
    import asyncio

    from cbench_client.remote.peer import split_target

    target, served = split_target(args.system)
    described = asyncio.run(_describe(args, target))
    shown = [each for each in described if served in (None, each.name)]
    if args.output == "json":
        print_json([{**asdict(each), "location": target} for each in shown])
    else:
        rows = tuple((each.name, each.version, target, each.description) for each in shown)
        print(draw(Grid(_HEADER, rows, frozenset({1, 2, 3}))))
    return OK


async def _describe(args: argparse.Namespace, target: str) -> "list[SystemDescription]":
    from cbench_client import ClientError, Tls
    from cbench_client.remote.connection import SystemConnection

    secured = args.system_tls or args.system_ca
    connection = SystemConnection(target, tls=Tls(ca_pem=pem(args.system_ca)) if secured else None)
    try:
        return await connection.describe()
    except ClientError as error:
        raise CommandFailed(in_flags(error, SYSTEM_ADVICE)) from error
    finally:
        await connection.close()
