"""Reaching what a run needs: when it begins, and again when it is resumed."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from typing import Protocol, TypeVar

from cbench_server.errors import InvalidSpec, RunFailed, SystemUnreachable
from cbench_server.events import StateChanged
from cbench_server.recordings import system_identity
from cbench_server.results import Failure
from cbench_server.runstore import RunStore
from cbench_server.spec import ModelRef, Run, RunSpec, RunState, SystemRef
from cbench_server.systems.caller import Caller
from cbench_server.systems.memory_caller import MemoryCaller

_ASK_AGAIN_S = 0.5

AnyCaller = Caller | MemoryCaller
T = TypeVar("T")


class SystemFinder(Protocol):
    """Reaches systems, wherever they are."""

    async def find_systems(self, ref: SystemRef, reader: ModelRef | None) -> list[Caller]:
        """Return the systems a reference means, or raise SystemUnreachable.

        A reader, if given, answers for those that return no response.
        """
        ...

    async def find_memory_systems(
        self, ref: SystemRef, reader: ModelRef | None
    ) -> list[MemoryCaller]:
        """Do the same for memory systems."""
        ...


async def connect(finder: SystemFinder, spec: RunSpec) -> tuple[list[AnyCaller], dict[str, str]]:
    """Reach every system of a spec, with its identity; names must differ."""
    callers: list[AnyCaller] = []
    identities: dict[str, str] = {}
    try:
        for ref in spec.systems:
            found: Sequence[AnyCaller]
            if spec.kind == "memory":
                found = await finder.find_memory_systems(ref, spec.reader)
            else:
                found = await finder.find_systems(ref, spec.reader)
            callers.extend(found)
            for caller in found:
                identity = system_identity(caller.description, ref.options, spec)
                identities[caller.description.name] = identity
        names = [caller.description.name for caller in callers]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidSpec(
                f'{names.count(repeated[0])} systems are named "{repeated[0]}". '
                "Give each a name of its own with --name."
            )
    except BaseException:
        await close_all(callers)
        raise
    return callers, identities


async def reconnect(
    finder: SystemFinder, store: RunStore, run: Run, clock: Callable[[], float]
) -> tuple[list[AnyCaller], Run]:
    """Reach the systems of a resumed run, waiting for those that are away.

    Returns the run, too, with the resumption on record.
    """
    callers, _ = await patiently(store, run, lambda: connect(finder, run.spec))
    names = tuple(caller.description.name for caller in callers)
    if run.systems and set(names) != set(run.systems):
        await close_all(callers)
        raise RunFailed(
            Failure(
                "system",
                "SYSTEM_CHANGED",
                f"the run was made with {', '.join(run.systems)}, but now there are "
                f"{', '.join(names)}. Start a new run.",
            )
        )
    resumption = {"time": clock(), "systems": [asdict(each.description) for each in callers]}
    config = {**run.config, "resumptions": [*run.config.get("resumptions", []), resumption]}
    await store.append(run.run_id, [], update={"config": config})
    return callers, replace(run, config=config)


async def patiently(store: RunStore, run: Run, reach: Callable[[], Awaitable[T]]) -> T:
    """Reach what a run needs, asking again while it is away, for as long as the run waits."""
    deadline = time.monotonic() + run.spec.wait_timeout
    announced = False
    while True:
        try:
            return await reach()
        except SystemUnreachable as error:
            if not announced:
                announced = True
                await store.append(
                    run.run_id,
                    [StateChanged(RunState.WAITING, str(error))],
                    update={"state": RunState.WAITING, "waiting_reason": str(error)},
                )
            if time.monotonic() >= deadline:
                message = (
                    f"{error} It stayed away for {run.spec.wait_timeout:g}s; "
                    f"start it, then: cbench resume {run.run_id}"
                )
                raise RunFailed(Failure("transport", "SYSTEM_GONE", message)) from error
            await asyncio.sleep(_ASK_AGAIN_S)


async def close_all(callers: Sequence[AnyCaller]) -> None:
    """Let go of systems."""
    for caller in callers:
        await caller.close()
