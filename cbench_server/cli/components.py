"""`cbench datasets`, `evaluators`, `metrics` and `systems`: what a run may name."""

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from google.protobuf.json_format import MessageToDict

from cbench_client import ClientError, Tls
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.connection import SystemConnection, SystemDescription
from cbench_client.peer import split_target
from cbench_server.cli.connection import connect, pem
from cbench_server.cli.exits import OK, CommandFailed, in_system_flags
from cbench_server.cli.screen import draw, print_json
from cbench_server.reports.grid import Grid


def datasets(args: argparse.Namespace) -> int:
    """List datasets."""
    found = _components(args).datasets
    rows = [
        (
            info.name,
            info.family,
            str(info.size) if info.HasField("size") else "?",
            ", ".join(info.evaluators),
            info.primary_score + ("" if info.official_metric else "*"),
            "embedded" if info.embedded else "here" if info.available else "download",
        )
        for info in found
    ]
    header = ("Dataset", "Family", "Size", "Evaluators", "Score", "Data")
    _print(args, found, header, rows, {1, 3, 4, 5})
    if args.output == "table" and not all(info.official_metric for info in found):
        print("\n* A stand-in, not the benchmark's official metric.")
    return OK


def evaluators(args: argparse.Namespace) -> int:
    """List evaluators."""
    found = _components(args).evaluators
    rows = [
        (info.name, ", ".join(score.name for score in info.scores), info.location, info.description)
        for info in found
    ]
    _print(args, found, ("Evaluator", "Scores", "Where", "What it says"), rows, {1, 2, 3})
    return OK


def metrics(args: argparse.Namespace) -> int:
    """List metrics."""
    found = _components(args).metrics
    rows = [(info.name, ", ".join(info.keys), info.description) for info in found]
    _print(args, found, ("Metric", "Keys", "What it says"), rows, {1, 2})
    return OK


def systems(args: argparse.Namespace) -> int:
    """List systems of the daemon, or of one process."""
    header = ("System", "Version", "Where", "What it does")
    if args.system:
        target, served = split_target(args.system)
        described = asyncio.run(_describe(args, target))
        shown = [each for each in described if served in (None, each.name)]
        if args.output == "json":
            print_json([{**asdict(each), "location": target} for each in shown])
        else:
            rows = tuple((each.name, each.version, target, each.description) for each in shown)
            print(draw(Grid(header, rows, frozenset({1, 2, 3}))))
        return OK
    components = _components(args)
    found = [*components.systems, *components.memory_systems]
    listed = [
        (
            info.name,
            info.version,
            info.location if place < len(components.systems) else f"{info.location}, memory",
            info.description,
        )
        for place, info in enumerate(found)
    ]
    _print(args, found, header, listed, {1, 2, 3})
    return OK


def _components(args: argparse.Namespace) -> bench_pb2.ListComponentsResponse:
    with connect(args) as client:
        return client.components()


async def _describe(args: argparse.Namespace, target: str) -> list[SystemDescription]:
    secured = args.system_tls or args.system_ca
    connection = SystemConnection(target, tls=Tls(ca_pem=pem(args.system_ca)) if secured else None)
    try:
        return await connection.describe()
    except ClientError as error:
        raise CommandFailed(in_system_flags(str(error))) from error
    finally:
        await connection.close()


def _print(
    args: argparse.Namespace,
    messages: Iterable[Any],
    header: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    left: set[int],
) -> None:
    if args.output == "json":
        print_json([message_to_dict(message) for message in messages])
    elif rows:
        print(draw(Grid(header, tuple(rows), frozenset(left))))
    else:
        print("There are none.", file=sys.stderr)


def message_to_dict(message: Any) -> Mapping[str, Any]:
    """Give a message as plain data, with every field and 64-bit numbers as numbers."""
    plain: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    # The JSON of protobuf writes int64 as text.
    if "size" in plain:
        plain["size"] = int(plain["size"])
    return plain
