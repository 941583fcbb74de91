"""Connections of a run: the systems, evaluators and models it works with, opened and closed."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from cbench_server.datasets.prompts.prompt import Asking
from cbench_server.errors import (
    DatasetAway,
    InvalidSpec,
    RunFailed,
    SystemUnreachable,
    blaming,
)
from cbench_server.events import StateChanged
from cbench_server.models.reader import Reader
from cbench_server.registry import Registry
from cbench_server.results import Failure
from cbench_server.runs.answers import Told, system_identity
from cbench_server.runs.judging import check_labels
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.prompting import resolve_prompts
from cbench_server.runs.resolution import (
    resolve_datasets,
    resolve_evaluators,
)
from cbench_server.runs.resolved_dataset import ResolvedDataset, Uploads
from cbench_server.runs.store import RunStore
from cbench_server.runs.sweep import point_name
from cbench_server.spec import EvaluatorRef, ModelRef, Run, RunNote, RunSpec, RunState, SystemRef
from cbench_server.systems.caller import Caller
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.in_process_memory import InProcessMemoryCaller
from cbench_server.systems.predictions import Predictions, PredictionsCaller
from cbench_server.tokens import Tokenizer, get_tokenizer
from cbench_server.types import Evaluator

_ASK_AGAIN_S = 0.5

Placed = tuple[int, SystemRef]
"""A reference to a system, and its place in the spec."""

T = TypeVar("T")


class Finder(Protocol):
    """Reaches systems, evaluators and models, here and elsewhere."""

    async def find_systems(self, ref: SystemRef, kind: str) -> list[Caller]:
        """Return the systems, or memory systems, a reference means; or raise SystemUnreachable."""
        ...

    async def spread(self, spec: RunSpec) -> tuple[list[Placed], tuple[RunNote, ...]]:
        """Return the spec's systems with the options of the run that each of them takes.

        One that serves several becomes as many where that depends on the system.
        """
        ...

    async def find_reader(self, ref: ModelRef) -> Reader:
        """Return the model that answers for systems which do not."""
        ...

    async def find(self, ref: EvaluatorRef) -> Evaluator:
        """Return an evaluator served at a target, attached, or registered here."""
        ...

    async def release(self, evaluator: Evaluator) -> None:
        """Close what was opened to reach an evaluator."""
        ...


@dataclass
class Connections:
    """What a run has open. Whoever holds it closes it."""

    finder: Finder
    datasets: list[ResolvedDataset]
    plans: dict[str, DatasetPlan] = field(default_factory=dict)
    callers: list[Caller] = field(default_factory=list)
    identities: dict[str, str] = field(default_factory=dict)
    """What the systems' answers are known by, empty for one that gives no version."""
    reader: Reader | None = None
    prompts: dict[str, Asking] = field(default_factory=dict)
    """What models are told, by dataset."""
    told: dict[str, Told] = field(default_factory=dict)
    """How much of that the rows of each system depend on."""
    roles: dict[str, str] = field(default_factory=dict)
    """What systems are there for which are not under test."""
    refs: dict[str, SystemRef] = field(default_factory=dict)
    """What each system was asked for by."""
    places: dict[str, int] = field(default_factory=dict)
    """Where that stands among the systems of the spec."""
    tokenizer: Tokenizer | None = None
    """Counts tokens where no name of a spec says how."""
    notes: tuple[RunNote, ...] = ()
    """What became of the options of the run."""

    @property
    def names(self) -> tuple[str, ...]:
        """The systems' names, in order."""
        return tuple(caller.description.name for caller in self.callers)

    def count_by(self, spec: RunSpec) -> Tokenizer:
        """Return what counts the tokens of a run."""
        return self.tokenizer or get_tokenizer(spec.tokenizer or None)

    async def close(self) -> None:
        """Let go of everything; of what was never opened there is nothing to let go."""
        for caller in self.callers:
            await caller.close()
        evaluators = {id(each): each for plan in self.plans.values() for each in plan.evaluators}
        for evaluator in evaluators.values():
            await self.finder.release(evaluator)
        if self.reader is not None:
            await self.reader.close()
        self.callers, self.plans, self.reader = [], {}, None


async def connect(
    spec: RunSpec,
    finder: Finder,
    registry: Registry,
    uploads: Uploads,
    *,
    recorded: Mapping[str, Any] | None = None,
) -> Connections:
    """Find and open everything that a spec names.

    With what is `recorded` of a run, that is rescored, and no system is called.
    """
    is_rescored = recorded is not None
    datasets = resolve_datasets(spec, registry, uploads, recorded=recorded)
    for name, digest in (("errata", spec.errata_upload), ("labels", spec.labels_upload)):
        if digest:
            with blaming(f"{'' if is_rescored else 'spec.'}{name}_upload"):
                uploads.count(digest)
    opened = Connections(finder, datasets)
    try:
        opened.plans = await resolve_evaluators(spec, datasets, finder.find)
        if not is_rescored:
            check_labels(spec, opened.plans.values())
            # In a thread, since few-shot examples are read.
            opened.prompts = await asyncio.to_thread(resolve_prompts, spec, datasets)
            await _reach_systems(spec, opened, uploads)
            if spec.reader is not None:
                with blaming("spec.reader"):
                    opened.reader = await finder.find_reader(spec.reader)
    except BaseException:
        await opened.close()
        raise
    return opened


async def _reach_systems(spec: RunSpec, opened: Connections, uploads: Uploads) -> None:
    placed: list[Placed] = list(enumerate(spec.systems))
    named_by: list[tuple[str, int]] = []
    if spec.options or any(ref.options for ref in spec.systems):
        placed, opened.notes = await opened.finder.spread(spec)
    for place, ref in placed:
        with blaming(f"spec.systems[{place}]"):
            found = await _find_points(ref, spec.kind, opened.finder, uploads)
        for caller in found:
            opened.callers.append(caller)
            named_by.append((caller.description.name, place))
            identity = system_identity(caller.description, ref.options, spec)
            opened.identities[caller.description.name] = identity
            opened.refs[caller.description.name] = ref
            opened.places[caller.description.name] = place
            if ref.role:
                opened.roles[caller.description.name] = ref.role
            if told := _told(ref, caller, spec):
                opened.told[caller.description.name] = told
    names = opened.names
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidSpec(
            f'{names.count(repeated[0])} systems are named "{repeated[0]}". Give each its own '
            "name.",
            field=_second_of(repeated[0], named_by),
            flags="A name is given with --name.",
        )


def _second_of(name: str, named_by: list[tuple[str, int]]) -> str:
    """Return the path of the second system that has a name."""
    places = [place for each, place in named_by if each == name]
    return f"spec.systems[{places[1]}].name"


def _told(ref: SystemRef, caller: Caller, spec: RunSpec) -> Told | None:
    """Return what of the prompts the rows of a system depend on."""
    if spec.reader is not None or ref.proxy is not None:
        return "prompt"
    if isinstance(caller, InProcessCaller | InProcessMemoryCaller):
        return "instruction" if caller.takes_instruction else None
    return None if ref.predictions else "instruction"


async def _find_points(ref: SystemRef, kind: str, finder: Finder, uploads: Uploads) -> list[Caller]:
    """Find systems; a point of a sweep is named by the system and its value."""
    found = await _find_systems(ref, kind, finder, uploads)
    if not ref.swept_option or ref.name:
        return found
    names = [caller.description.name for caller in found]
    for caller in found:
        await caller.close()
    if len(names) > 1:
        raise InvalidSpec(
            f"a run sweeps one system, and {ref.target} serves {', '.join(names)}. Choose "
            "one of them by its served_name.",
            field="served_name",
            flags=f"Name it with {ref.target}/{names[0]}, or for --launch "
            f"with --only-system {names[0]}",
        )
    named = replace(ref, name=point_name(names[0], ref))
    return await _find_systems(named, kind, finder, uploads)


async def _find_systems(
    ref: SystemRef, kind: str, finder: Finder, uploads: Uploads
) -> list[Caller]:
    if not ref.predictions:
        return await finder.find_systems(ref, kind)
    if kind == "memory":
        raise InvalidSpec(
            "predictions are scored by runs that process examples; a memory run calls systems.",
            field="predictions",
            flags="Score them with: cbench run",
        )
    name = ref.name or "predictions"
    with blaming("predictions"):
        # In a thread, since there may be millions of them.
        outputs = uploads.iterate(ref.predictions)
        system = await asyncio.to_thread(Predictions, name, outputs, ref.predictions[:12])
    return [PredictionsCaller(system)]


async def check_systems(
    store: RunStore, run: Run, opened: Connections, clock: Callable[[], float]
) -> Run:
    """Make sure that a resumed run has the systems it had, and put the resumption on record."""
    # What the run added is no system of others, and comes back by itself.
    systems = [name for name in run.systems if not run.is_added(name)]
    if systems and set(opened.names) != set(systems):
        raise RunFailed(
            Failure(
                "system",
                "SYSTEM_CHANGED",
                f"the run was made with {', '.join(systems)}, but now there are "
                f"{', '.join(opened.names)}. Start a new run.",
                field="spec.systems",
            )
        )
    _check_versions(run, opened)
    _check_prompts(run, opened)
    described = [caller.description.recorded for caller in opened.callers]
    resumption = {"time": clock(), "systems": described}
    config = {**run.config, "resumptions": [*run.config.get("resumptions", []), resumption]}
    await store.append(run.run_id, [], update={"config": config})
    return replace(run, config=config)


def _check_versions(run: Run, opened: Connections) -> None:
    """Make sure that no name has come back with another version."""
    began = {each["name"]: each.get("version", "") for each in run.config.get("systems", ())}
    for caller in opened.callers if run.completed_rows else ():
        name, version = caller.description.name, caller.description.version
        if began.get(name, version) != version:
            who = f'system "{name}"'
            message = (
                f'{who} has version "{version}", and the rows there are were made with '
                f'version "{began[name]}". Start a new run, or serve that version again.'
            )
            raise RunFailed(Failure("system", "SYSTEM_CHANGED", message), who=who)


def _check_prompts(run: Run, opened: Connections) -> None:
    """Make sure that models of a resumed run are told what they were told before."""
    if "prompt" not in opened.told.values() or not run.completed_rows:
        return
    recorded = run.config.get("prompts", {}).get("datasets", {})
    for label, asking in opened.prompts.items():
        if recorded.get(label, {}).get("digest") != asking.prompt.digest:
            message = (
                f'the prompt of "{label}" is not the one that the run began with, which another '
                "version of cbench has. Start a new run."
            )
            raise RunFailed(Failure("daemon", "PROMPT_CHANGED", message))


async def wait_for(store: RunStore, run: Run, reach: Callable[[], Awaitable[T]]) -> T:
    """Reach what a run needs, asking again while it is away, for as long as the run waits."""
    deadline = time.monotonic() + run.spec.wait_timeout
    announced = False
    while True:
        try:
            return await reach()
        except (SystemUnreachable, DatasetAway) as error:
            if not announced:
                announced = True
                await store.append(
                    run.run_id,
                    [StateChanged(RunState.WAITING, str(error))],
                    update={"state": RunState.WAITING, "waiting_reason": str(error)},
                )
            if time.monotonic() >= deadline:
                is_data = isinstance(error, DatasetAway)
                message = (
                    f"{str(error).rstrip('.')}. It stayed away for {run.spec.wait_timeout:g}s; "
                    f"{'then' if is_data else 'start it, then'} resume the run."
                )
                gone = Failure(
                    "transport",
                    "DATASET_GONE" if is_data else "SYSTEM_GONE",
                    message,
                    field=error.field,
                )
                raise RunFailed(gone) from error
            await asyncio.sleep(_ASK_AGAIN_S)
