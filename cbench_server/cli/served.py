"""Names that processes announce for the systems they serve, asked for when a flag needs them."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cbench_server.cli.exits import (
    SYSTEM_ADVICE,
    CommandFailed,
    UsageError,
    did_you_mean,
    in_flags,
)

if TYPE_CHECKING:
    from cbench_client._gen.cbench.v1.evaluator_pb2 import EvaluatorDescribeResponse, EvaluatorInfo
    from cbench_client.remote.description import SystemDescription

System = dict[str, Any]
Announced = Mapping[int, Sequence[str]]
"""The names of the systems that a process serves, by its place on the command line."""


def announced_names(args: argparse.Namespace, launched: Mapping[int, str]) -> dict[int, list[str]]:
    """Ask the launched processes for the names of their systems, if a flag may use one."""
    owners = {owner for owner, *_ in (*args.option, *args.sweep)} - {""}
    if not (owners or args.only_systems) or not launched:
        if args.only_systems:
            raise UsageError(
                "--only-system chooses among the systems of a --launch, and there is none. Write "
                "--system TARGET/NAME for one of several that are served."
            )
        return {}
    import asyncio  # Here, so that --help does not wait for it.

    return {
        place: [each.name for each in asyncio.run(describe(target, args.kind))]
        for place, target in launched.items()
    }


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
