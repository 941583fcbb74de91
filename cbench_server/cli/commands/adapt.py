"""`cbench adapt`: serve what another library has, such as a LangChain retriever, as a system."""

import argparse

from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.screen import draw, print_json
from cbench_server.texts.grid import Grid

_EXAMPLES = """\
examples:
  cbench adapt --list
  cbench run --launch "cbench adapt langchain-retriever my_rag:build" --dataset long-notes
  cbench memory run --launch "cbench adapt mem0 my_memory:build" --dataset mini-memory
"""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `cbench adapt`."""
    parser.usage = "cbench adapt (--list | NAME MODULE:OBJECT [HOST:PORT])"
    parser.epilog = _EXAMPLES
    parser.set_defaults(handler=adapt)
    parser.add_argument("name", metavar="NAME", nargs="?", help="an adapter; see --list")
    parser.add_argument(
        "object",
        metavar="MODULE:OBJECT",
        nargs="?",
        help="what it is made from, in a Python module in this folder",
    )
    parser.add_argument(
        "address", metavar="HOST:PORT", nargs="?", help="where to listen (default: a free port)"
    )
    parser.add_argument("--list", action="store_true", help="list the adapters")
    parser.add_argument(
        "--output", choices=("table", "json"), default="table", help="how to list (default: table)"
    )


def adapt(args: argparse.Namespace) -> int:
    """List the adapters, or serve one until told to end."""
    if args.list:
        return _list(args.output)
    if not (args.name and args.object):
        raise UsageError("name an adapter and an object: cbench adapt NAME MODULE:OBJECT")
    from cbench_client import serve
    from cbench_client.adapters.__main__ import BadAdapter, made
    from cbench_client.adapters.library import MissingLibrary

    try:
        system = made(args.name, args.object)
    except (BadAdapter, MissingLibrary) as error:
        raise UsageError(str(error)) from error
    serve(system, *([args.address] if args.address else []))
    return OK


def _list(output: str) -> int:
    from dataclasses import asdict

    from cbench_client.adapters.catalog import ADAPTERS

    if output == "json":
        print_json([{**asdict(each), "command": each.command} for each in ADAPTERS])
        return OK
    rows = tuple((each.name, each.kind, each.library, each.takes) for each in ADAPTERS)
    print(draw(Grid(("Adapter", "Kind", "pip install", "Made from"), rows, frozenset({1, 2, 3}))))
    print("\nEach has an example that runs in docs/adapters.md")
    return OK
