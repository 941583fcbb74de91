"""Flags for a Ray cluster: `--engine ray`, and what each replica takes of its node."""

import argparse
from collections.abc import Mapping
from typing import Any

from cbench_server.cli.exits import UsageError
from cbench_server.cli.values import size


def add_engine_flags(group: Any) -> None:
    """Add `--engine`, `--ray-address` and `--resources`."""
    group.add_argument(
        "--engine",
        choices=("local", "ray"),
        help="where each --launch runs: here, or on a Ray cluster (default: local); where it is "
        "scored is a setting of the daemon",
    )
    group.add_argument(
        "--ray-address",
        metavar="HOST:PORT",
        help="the Ray cluster of --engine ray; auto for the one that runs here, local to start one "
        "(default: auto)",
    )
    group.add_argument(
        "--resources",
        metavar="NAME=N,...",
        type=resources,
        help="what each replica of a --launch takes of its node with --engine ray, such as "
        "GPU=1,memory=8GB (default: CPU=1)",
    )


def resources(text: str) -> dict[str, float]:
    """Read `CPU=2,GPU=0.5,memory=8GB,name=1`."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        try:
            number = float(size(value)) if name == "memory" else float(value)
        except (ValueError, argparse.ArgumentTypeError):
            number = -1.0
        if not equals or not name or not 0 <= number < float("inf"):
            raise argparse.ArgumentTypeError(
                f'"{part.strip()}" is no resource; write it as CPU=2, GPU=1 or memory=8GB.'
            )
        if name in found:
            raise argparse.ArgumentTypeError(f"{name} stands twice in {text}.")
        found[name] = number
    return found


def resources_text(needs: Mapping[str, float]) -> str:
    """Write resources as they are read."""
    return ",".join(f"{name}={number:.17g}" for name, number in needs.items())


def resources_at(args: argparse.Namespace, place: int) -> dict[str, float]:
    """Return what each replica of a launched system takes of its node; empty for the usual."""
    from cbench_server.cli.run_files.filed import entry_at

    filed = entry_at(args, place).get("resources", "")
    if not filed or args.resources:
        return dict(args.resources or {})
    if args.engine != "ray":
        raise UsageError(f'resources = "{filed}" in the run file needs --engine ray.')
    try:
        return resources(filed)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"resources in the run file: {error}") from error


def check_engine(args: argparse.Namespace) -> None:
    """Refuse flags that nothing would heed."""
    for flag, value in (("--ray-address", args.ray_address), ("--resources", args.resources)):
        if value and args.engine != "ray":
            raise UsageError(f"{flag} needs --engine ray.")
    if args.engine == "ray" and not any(kind == "launch" for kind, _ in args.systems):
        raise UsageError(
            "--engine ray says where --launch runs, and nothing is launched. To score on a Ray "
            "cluster, set CBENCH_ENGINE=ray, or start the daemon with --engine ray."
        )
