"""Replicas at several targets: found, compared with one another, and put behind one caller."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cbench_client.remote.description import SystemDescription as ServedSystem
from cbench_server.errors import InvalidSpec, SystemUnreachable
from cbench_server.limits import MAX_REPLICAS
from cbench_server.spec import SystemRef
from cbench_server.systems.caller import Caller
from cbench_server.systems.replica import Replica, Standing
from cbench_server.systems.replicas import Replicas

_CONNECT_S = 5.0

Describe = Callable[[SystemRef], Awaitable[list[ServedSystem]]]
"""Asks a target for the systems that a reference means."""
Open = Callable[[SystemRef, list[ServedSystem]], Awaitable[list[Any]]]
"""Opens callers of these systems at the target of a reference."""


def check_replicas(ref: SystemRef) -> None:
    """Refuse replicas that cannot be meant."""
    if not ref.target:
        raise InvalidSpec(
            "replicas are further targets of a system that has a target; this one has none.",
            field="replicas",
        )
    targets = [ref.target, *ref.replicas]
    if len(targets) > MAX_REPLICAS:
        raise InvalidSpec(
            f"a system has at most {MAX_REPLICAS} replicas, not {len(targets):,}.",
            field="replicas",
        )
    for target in targets:
        if not target or targets.count(target) > 1:
            what = f'"{target}" is named twice' if target else "one target is empty"
            raise InvalidSpec(f"{what}; each replica is one process.", field="replicas")


async def find_replicas(ref: SystemRef, describe: Describe, open_at: Open) -> list[Caller]:
    """Return the systems that are served at all targets of a reference.

    One target that answers is enough; the others are looked for while the run goes on.
    """
    check_replicas(ref)
    refs = [replace(ref, target=target, replicas=()) for target in (ref.target, *ref.replicas)]
    answers = await asyncio.gather(*map(describe, refs), return_exceptions=True)
    found: list[tuple[SystemRef, list[ServedSystem]]] = []
    for each, answer in zip(refs, answers, strict=True):
        if isinstance(answer, list):
            found.append((each, answer))
        elif not isinstance(answer, SystemUnreachable):
            raise answer
    if not found:
        first = answers[0]
        assert isinstance(first, SystemUnreachable)
        raise SystemUnreachable(f"none of {len(refs)} replicas is there. The first: {first}")
    where, served = found[0]
    for other, systems in found[1:]:
        _check_alike(where.target, served, other.target, systems)
    opened = await asyncio.gather(*(open_at(each, served) for each in refs))
    return [
        await _joined(served[place], refs, [callers[place] for callers in opened], describe)
        for place in range(len(served))
    ]


def _check_alike(
    target: str, served: Sequence[ServedSystem], other: str, systems: Sequence[ServedSystem]
) -> None:
    names, others = ([each.name for each in listed] for listed in (served, systems))
    if sorted(names) != sorted(others):
        raise InvalidSpec(
            f"{target} serves {', '.join(names)}, and {other} serves {', '.join(others)}. Replicas "
            "serve the same systems.",
            field="replicas",
        )
    for one in served:
        twin = next(each for each in systems if each.name == one.name)
        if difference := _difference(one, twin, target, other):
            raise InvalidSpec(
                f'"{one.name}" is not the same everywhere: {difference}. Serve one version at '
                "all addresses, or evaluate them as systems of their own.",
                field="replicas",
            )


def _compared(one: ServedSystem, twin: ServedSystem) -> list[tuple[str, str, str]]:
    """Return what replicas have in common, with the values of two of them."""
    return [
        ("version", one.version, twin.version),
        ("description", one.description, twin.description),
    ]


def _difference(one: ServedSystem, twin: ServedSystem, target: str, other: str) -> str:
    for what, said, says in _compared(one, twin):
        if said != says:
            return f'{target} has {what} "{said}", {other} has {what} "{says}"'
    return ""


async def _joined(
    served: ServedSystem, refs: Sequence[SystemRef], callers: Sequence[Any], describe: Describe
) -> Caller:
    """Put the callers of one system behind one, those that cannot be reached yet included."""
    are_there = await asyncio.gather(*(each.wait_connected(_CONNECT_S) for each in callers))
    members = [
        Replica(ref.target, caller, partial(_stands, caller), _check(ref, served, describe))
        for ref, caller in zip(refs, callers, strict=True)
    ]
    group = Replicas(replace(callers[0].description, location=refs[0].target), members)
    for member, is_there in zip(members, are_there, strict=True):
        if not is_there:
            group.roster.lost(member, "it cannot be reached.")
    if not any(member.standing is Standing.IN for member in members):
        await group.close()
        raise SystemUnreachable(f"none of {len(refs)} replicas can be called.")
    return group


def _stands(caller: Any) -> bool:
    return bool(caller.is_connected)


def _check(
    ref: SystemRef, served: ServedSystem, describe: Describe
) -> Callable[[], Awaitable[str]]:
    async def check() -> str:
        """Say in which way the replica is not what the run began with."""
        twin = next(each for each in await describe(replace(ref, served_name=served.name)))
        for what, said, says in _compared(served, twin):
            if said != says:
                return f'it came back with {what} "{says}", and the run began with "{said}".'
        return ""

    return check
