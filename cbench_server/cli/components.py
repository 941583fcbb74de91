"""Lists of components, printed by the commands `datasets`, `evaluators` and so on."""

import argparse
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cbench_server.cli import options
from cbench_server.cli.connect import connect
from cbench_server.cli.outcome import inform
from cbench_server.cli.screen import draw, print_json
from cbench_server.texts.grid import Grid

if TYPE_CHECKING:
    from cbench_client._gen.cbench.v1 import bench_pb2
    from cbench_client.messages.options import DeclaredOptions

_WIDTH = 40


def add_listing(parser: argparse.ArgumentParser, handler: options.Handler) -> None:
    """Add the flags of a command that lists components."""
    parser.set_defaults(handler=handler)
    options.add_output(parser)
    options.add_server_flags(parser)


def components(args: argparse.Namespace) -> "bench_pb2.ListComponentsResponse":
    """Ask the daemon for everything it has."""
    with connect(args) as client:
        return client.components()


def option_lines(declared: "DeclaredOptions | None") -> list[str]:
    """Return the options that a component takes, one per line; at least one line."""
    if declared is None:
        return ["not declared"]
    lines: list[str] = []
    for each in declared.options:
        lines.append(each.summary)
        if each.description:
            lines += [f"  {line}" for line in textwrap.wrap(each.description, _WIDTH)]
    return lines + ["any"] * declared.accepts_others or [""]


def wrapped(names: Iterable[str], width: int = _WIDTH) -> list[str]:
    """Return names as the lines of a cell that is not too wide; at least one."""
    text = ", ".join(names)
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def print_components(
    args: argparse.Namespace,
    messages: Iterable[Any],
    header: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    left: set[int],
) -> None:
    """Print components as JSON, or as a table with the columns in `left` left-aligned."""
    if args.output == "json":
        print_json([message_to_dict(message) for message in messages])
    elif rows:
        print(draw(Grid(header, tuple(rows), frozenset(left))))
    else:
        inform(args, "There are none.")


def message_to_dict(message: Any) -> dict[str, Any]:
    """Give a message as plain data, with every field and 64-bit numbers as numbers."""
    from google.protobuf.json_format import MessageToDict

    plain: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    # The JSON of protobuf writes int64 as text.
    if "size" in plain:
        plain["size"] = int(plain["size"])
    return plain
