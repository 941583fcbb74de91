"""Replicas on the command line: `--system NAME=A,B,C`, and `--replicas` of what is launched."""

import argparse
import re
from typing import Any

from cbench_server.cli.exits import UsageError
from cbench_server.cli.values import positive_int
from cbench_server.limits import MAX_REPLICAS

_ADDRESSES = re.compile(r"[^,\s]+(,[^,\s]+)+")
_NAMED = re.compile(r"([^=,:/]+)=(.+)", re.DOTALL)


def add_replicas_flag(group: Any) -> None:
    """Add `--replicas`."""
    group.add_argument(
        "--replicas",
        metavar="N",
        type=positive_int,
        help="start each --launch so many times, as replicas of one system that share its calls "
        "(default: 1)",
    )


def served_at(text: str) -> dict[str, Any]:
    """Read `[NAME=]TARGET[/SERVED][,TARGET...]`: the parts of a reference that it tells."""
    from cbench_client.remote.peer import split_target

    match = _NAMED.fullmatch(text)
    name, listed = (match[1], match[2]) if match else ("", text)
    targets, served = [], {}
    for each in listed.split(","):
        target, chosen = split_target(each.strip())
        if not target:
            raise UsageError(f'"{text}" names an empty address; write --system NAME=A:1,B:1.')
        targets.append(target)
        if chosen:
            served[chosen] = target
    if len(served) > 1:
        (one, at), (other, there) = list(served.items())[:2]
        raise UsageError(
            f'"{text}" names {one} at {at} and {other} at {there}; replicas are one system.'
        )
    return {
        "name": name,
        "target": targets[0],
        "replicas": targets[1:],
        "served_name": next(iter(served), ""),
    }


def launched_at(text: str) -> dict[str, Any]:
    """Read where launched processes are, which are replicas where there are several."""
    first, *others = text.split(",") if _ADDRESSES.fullmatch(text) else [text]
    return {"name": "", "target": first, "replicas": others, "served_name": ""}


def copies_of(args: argparse.Namespace, place: int) -> int:
    """Return how many of a launched system are started."""
    from cbench_server.cli.run_files.filed import entry_at

    count = int(entry_at(args, place).get("replicas") or args.replicas or 1)
    if count > 1 and args.systems[place][0] != "launch":
        raise UsageError(
            f"--replicas {count} is for --launch; --{args.systems[place][0]} has "
            "--exec-concurrency and --http-concurrency."
        )
    if count > MAX_REPLICAS:
        raise UsageError(f"a system has at most {MAX_REPLICAS} replicas, not {count:,}.")
    return count


def check_replicas(args: argparse.Namespace) -> None:
    """Refuse `--replicas` where nothing is launched."""
    if (args.replicas or 1) > 1 and not any(kind == "launch" for kind, _ in args.systems):
        raise UsageError("--replicas needs --launch; name served ones as --system NAME=A,B,C.")
