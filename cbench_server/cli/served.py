"""Names that processes announce for the systems they serve, asked for when a flag needs them."""

import argparse
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cbench_server.cli.exits import (
    SYSTEM_ADVICE,
    CommandFailed,
    UsageError,
    did_you_mean,
    in_flags,
)
from cbench_server.cli.processes import process_at
from cbench_server.cli.replicas import served_at
from cbench_server.cli.run_files.filed import entry_at
from cbench_server.errors import CbenchError

if TYPE_CHECKING:
    from cbench_client._gen.cbench.v1.evaluator_pb2 import EvaluatorDescribeResponse, EvaluatorInfo
    from cbench_client.remote.description import SystemDescription

System = dict[str, Any]
Announced = Mapping[int, Sequence[str]]
"""The names of the systems that a process serves, by its place on the command line."""


def announced_names(args: argparse.Namespace, launched: Mapping[int, str]) -> dict[int, list[str]]:
    """Ask processes for the names of their systems, if a flag may use one."""
    owners = {owner for owner, *_ in (*args.option, *args.sweep)} - {""}
    if args.only_systems and not launched:
        raise UsageError(
            "--only-system chooses among the systems of a --launch, and there is none. Write "
            "--system TARGET/NAME for one of several that are served."
        )
    if not (owners or args.only_systems):
        return {}
    import asyncio  # Here, so that --help does not wait for it.

    found = {
        place: [each.name for each in asyncio.run(describe(target, args.kind))]
        for place, target in launched.items()
    }
    if owners - _given_names(args) - {name for names in found.values() for name in names}:
        for place, target in _nameless(args).items():
            # What only the daemon can reach has no names here.
            with suppress(CbenchError, CommandFailed):
                at = process_at(target, args)
                served = asyncio.run(describe(at.target, args.kind, at.tls, at.token))
                found[place] = [each.name for each in served]
    return found


def assumed_names(args: argparse.Namespace, launched: Collection[int]) -> dict[int, list[str]]:
    """Return the names in flags that a process not asked for its systems may announce.

    They are taken for those of the first such process, a launched one without a `--name` if
    there is any.
    """
    used = (*(owner for owner, *_ in (*args.option, *args.sweep)), *args.only_systems)
    names = [name for name in dict.fromkeys(used) if name and name not in _given_names(args)]
    shown = sorted(launched, key=lambda place: (bool(_name_at(args, place)), place))
    places = [*shown, *_nameless(args)]
    return {places[0]: names} if places and names else {}


def _given_names(args: argparse.Namespace) -> set[str]:
    """Return all by which the command line itself names systems."""
    served = [served_at(value) for kind, value in args.systems if kind == "system"]
    parts = {told[part] for told in served for part in ("name", "served_name")}
    return parts | {*args.name} | {value for _, value in args.systems}


def _nameless(args: argparse.Namespace) -> dict[int, str]:
    """Return the targets of `--system` that say no name, by their places."""
    found = {}
    for place, (kind, value) in enumerate(args.systems):
        if kind == "system" and not _name_at(args, place):
            told = {**served_at(value), **entry_at(args, place)}
            if not (told["name"] or told["served_name"]):
                found[place] = str(told["target"])
    return found


def _name_at(args: argparse.Namespace, place: int) -> str:
    return args.name[place] if place < len(args.name) else ""


async def describe(
    target: str, kind: str, tls: Any = None, token: str | None = None
) -> "list[SystemDescription]":
    """Ask a process for the systems, memory systems or evaluators that it serves."""
    from cbench_client import ClientError
    from cbench_client.remote.connection import SystemConnection
    from cbench_server.errors import SystemUnreachable
    from cbench_server.rpc.remote_memory import served_memories

    if kind == "memory":
        try:
            return await served_memories(target, tls, token, target)
        except SystemUnreachable as error:
            raise CommandFailed(str(error)) from error
    if kind == "evaluator":
        described = await described_evaluators(target, tls, token)
        return [_evaluator(info, described.sdk) for info in described.evaluators]
    connection = SystemConnection(target, tls=tls, token=token)
    try:
        return await connection.describe()
    except ClientError as error:
        raise CommandFailed(in_flags(error, SYSTEM_ADVICE)) from error
    finally:
        await connection.close()


async def described_evaluators(
    target: str, tls: Any = None, token: str | None = None
) -> "EvaluatorDescribeResponse":
    """Ask a process for the evaluators that it serves."""
    from cbench_client import ClientError
    from cbench_client._gen.cbench.v1.evaluator_pb2 import EvaluatorDescribeResponse
    from cbench_client.remote import peer
    from cbench_client.remote.unary import UnaryConnection

    connection = UnaryConnection(target, "cbench.v1.Evaluator", tls=tls, token=token)
    try:
        found = await peer.describe(connection, EvaluatorDescribeResponse, "evaluators")
        assert isinstance(found, EvaluatorDescribeResponse)
        return found
    except ClientError as error:
        raise CommandFailed(in_flags(error, SYSTEM_ADVICE)) from error
    finally:
        await connection.close()


def _evaluator(info: "EvaluatorInfo", sdk: str) -> "SystemDescription":
    from cbench_client.messages.options import declared_options
    from cbench_client.remote.description import SystemDescription

    return SystemDescription(
        name=info.name,
        version=info.version,
        description=info.description,
        max_concurrency=info.max_concurrency if info.HasField("max_concurrency") else None,
        streams=False,
        converses=False,
        sdk=sdk,
        declared=declared_options(info),
    )


def chosen(
    systems: Sequence[System], announced: Announced, only: Sequence[str]
) -> list[tuple[int, System]]:
    """Put the systems that processes announce in their places, or those of `--only-system`."""
    known = [name for names in announced.values() for name in names]
    for name in only:
        if name not in known:
            hint = did_you_mean(name, known) or f" There are: {', '.join(known)}."
            raise UsageError(f'--only-system {name}: nothing launched serves "{name}".{hint}')
    found: list[tuple[int, System]] = []
    for place, system in enumerate(systems):
        names = [name for name in announced.get(place, ()) if not only or name in only]
        if place not in announced:
            found.append((place, system))
        elif not names:
            raise UsageError(
                f"--only-system names none of {', '.join(announced[place])}, which one --launch "
                "serves. Name one of them, or leave out that --launch."
            )
        elif system["name"] and len(names) > 1:
            raise UsageError(
                f'--name "{system["name"]}" stands for one system, and one --launch serves '
                f"{', '.join(names)}. Choose one with --only-system {names[0]}."
            )
        else:
            found += [(place, {**system, "served_name": name}) for name in names]
    return found
