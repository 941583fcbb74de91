"""Sweeps and direct arms on the command line: their flags, and the systems they become."""

import argparse
import math
from collections.abc import Sequence
from typing import Any

from cbench_server.cli.exits import UsageError, did_you_mean

System = dict[str, Any]


def add_sweep_flag(group: argparse._ActionsContainer) -> None:
    """Add `--sweep`."""
    group.add_argument(
        "--sweep",
        metavar="[SYSTEM.]KEY=V1,V2,...",
        type=sweep,
        action="append",
        default=[],
        help="run one system with each of these numbers for an option, such as "
        "ratio=0.1,0.2,0.5, beside the whole context and cuts of the same length, and draw the "
        "curve",
    )


def add_direct_flag(group: argparse._ActionsContainer) -> None:
    """Add `--direct`."""
    group.add_argument(
        "--direct",
        metavar="URL",
        help="the same --model without a proxy: what each --proxy saves is then measured by the "
        "prompt tokens that both report",
    )


def add_controls_flag(group: argparse._ActionsContainer) -> None:
    """Add `--controls`."""
    group.add_argument(
        "--controls",
        choices=("matched", "none"),
        help="add controls for each system that shortens contexts: `matched` cuts every example "
        "to the number of tokens that the system left of it; for one that writes summaries, the "
        "beginning of the text, as long as its own, and three sentences (default: matched with "
        "--sweep, else none)",
    )


def wants_controls(args: argparse.Namespace) -> bool:
    """Whether to add matched controls; a sweep has them unless they are left out."""
    usual = "matched" if args.sweep and args.kind != "memory" else "none"
    return (args.controls or usual) == "matched"


def sweep(text: str) -> tuple[str, str, tuple[float, ...]]:
    """Read `key=1,2` or `OWNER.key=1,2` into (owner, key, values)."""
    left, equals, right = text.partition("=")
    owner, _, key = left.rpartition(".")
    if not equals or not key:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a sweep; write it as key=0.1,0.2,0.5 or NAME.key=0.1,0.2,0.5.'
        )
    values = [_number(part.strip(), text) for part in right.split(",")]
    if len(values) < 2:
        raise argparse.ArgumentTypeError(
            f'"{text}" has one value; a sweep needs two or more, such as {key}=0.1,0.5.'
        )
    for value in values:
        if values.count(value) > 1:
            raise argparse.ArgumentTypeError(f'"{text}" has {value:g} twice; leave one out.')
    return owner, key, tuple(values)


def _number(part: str, text: str) -> float:
    try:
        value = float(part)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'"{part}" in "{text}" is not a number.')
    return int(value) if value == int(value) and "." not in part else value


def with_sweep(
    systems: Sequence[System],
    aliases: Sequence[set[str]],
    asked: Sequence[tuple[str, str, tuple[float, ...]]],
) -> list[System]:
    """Put the points of a sweep in the place of the system that is swept."""
    if not asked:
        return [*systems]
    if len(asked) > 1:
        names = " and ".join(key for _, key, _ in asked)
        raise UsageError(f"--sweep: a run sweeps one option of one system; got {names}.")
    ((owner, key, values),) = asked
    place = _place(systems, aliases, owner, key)
    points = [_point(systems[place], key, value) for value in values]
    return [*systems[:place], *points, *systems[place + 1 :]]


def _place(systems: Sequence[System], aliases: Sequence[set[str]], owner: str, key: str) -> int:
    tested = [place for place, system in enumerate(systems) if not system.get("role")]
    if owner:
        found = [place for place in tested if owner in aliases[place]]
        if len(found) > 1:
            raise UsageError(
                f'--sweep {owner}.{key}: "{owner}" is the name of {len(found)} systems; a run '
                "sweeps one. Give each its own name with --name."
            )
        if found:
            return found[0]
        known = sorted(set().union(*aliases))
        raise UsageError(
            f'--sweep {owner}.{key}: no system "{owner}" on this command line.'
            + (did_you_mean(owner, known) or f" There are: {', '.join(known)}.")
        )
    # The obvious controls do not make it unclear which system is meant.
    others = [place for place in tested if "builtin" not in systems[place]]
    if len(tested) == 1 or len(others) == 1:
        return (others if len(others) == 1 else tested)[0]
    there = ", ".join(min(names, key=len) for names in aliases if names)
    raise UsageError(
        f"--sweep {key}: there are {len(tested)} systems ({there}); say which one, as "
        f"--sweep NAME.{key}=..."
    )


def _point(system: System, key: str, value: float) -> System:
    point = {**system, "swept_option": key}
    if system["name"]:
        point["name"] = f"{system['name']}:{key}={value:g}"
    # A proxy's settings are further keys of its request body.
    home = "proxy" if "proxy" in system else ""
    settings = system["proxy"] if home else system
    changed = {**settings.get("options", {}), key: value}
    return {**point, **({home: {**settings, "options": changed}} if home else {"options": changed})}
