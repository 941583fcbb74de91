"""`cbench datasets show`: one dataset, one of its examples, and what a system gets to see."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_server.cli.components import message_to_dict
from cbench_server.cli.connection import connect
from cbench_server.cli.exits import OK, UsageError
from cbench_server.cli.fields import render_fields
from cbench_server.cli.screen import print_json
from cbench_server.cli.spec import registered_dataset
from cbench_server.errors import CbenchError, UnknownName
from cbench_server.registry import registry
from cbench_server.reports.grid import printable
from cbench_server.types import Example


def show_dataset(args: argparse.Namespace) -> int:
    """Show a dataset as the daemon knows it, with the first example as this machine loads it."""
    asked = registered_dataset(args.dataset, None)
    with connect(args) as client:
        known = {info.name: info for info in client.components().datasets}
        info = known.get(asked["name"]) or known.get(_registered_name(asked["name"]))
        if info is None:
            raise UnknownName("dataset", asked["name"], known)
        example, trouble = _first_example(info.name, asked["config"])
    if args.output == "json":
        print_json({**message_to_dict(info), "example": example})
        return OK
    print(_card(info))
    if example is None:
        print(f"\nNo example can be shown: {trouble}")
    else:
        print(f"\n{_example(example, info.reference_fields)}")
    return OK


def _registered_name(name: str) -> str:
    with suppress(UnknownName):
        return registry.name_of("dataset", name)
    # The daemon may have one that this machine has not.
    return name.replace("_", "-")


def _first_example(name: str, config: str) -> tuple[dict[str, Any] | None, str]:
    try:
        example = next(iter(_opened(name, config)), None)
    except CbenchError as error:
        if config:
            raise UsageError(str(error)) from error
        return None, str(error)
    return example, "it is empty."


def _opened(name: str, config: str) -> Iterator[Example]:
    record = registry.dataset(name)
    options = {"data_dir": registry.data_dir} if record.hub else {}
    return record.examples(config, **options)


def _card(info: bench_pb2.DatasetInfo) -> str:
    official = "" if info.official_metric else " (a stand-in, not the official metric)"
    lines = {
        "Dataset": info.name,
        "Tests": info.description,
        "Family": info.family,
        "Examples": f"{info.size:,}" if info.HasField("size") else "",
        "Configs": ", ".join(info.configs),
        "Evaluators": ", ".join(info.evaluators),
        "Score": f"{info.primary_score}{official}",
        "Licence": info.licence,
        "Source": info.source,
        "Cite": info.citation,
        "Data": "comes with cbench-server"
        if info.embedded
        else "here"
        if info.available
        else "on the hub",
    }
    return "\n".join(f"{name + ':':<12}{printable(text)}" for name, text in lines.items() if text)


def _example(example: Mapping[str, Any], reference_fields: Any) -> str:
    withheld = set(reference_fields)
    seen = {name: value for name, value in example.items() if name not in withheld}
    hidden = {name: value for name, value in example.items() if name in withheld}
    parts = ["A system sees:", render_fields(seen)]
    if hidden:
        parts += ["", "A system does not see:", render_fields(hidden)]
    return "\n".join(parts)
