"""Systems of a local evaluation: the objects that were given, as a spec refers to them."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cbench_server.contract import name_of
from cbench_server.errors import InvalidInput, InvalidSpec
from cbench_server.registry import registry
from cbench_server.runs.local_arguments import components
from cbench_server.runs.sweep import point_name, refuse_twice
from cbench_server.spec import ModelRef, PriceRef, RunSpec, SystemRef
from cbench_server.systems import BUILTINS, MEMORY_BUILTINS
from cbench_server.systems.caller import PREDICTIONS, Caller
from cbench_server.systems.in_process import InProcessCaller
from cbench_server.systems.in_process_memory import InProcessMemoryCaller, is_factory
from cbench_server.systems.openai_proxy import OpenAIProxy
from cbench_server.systems.own_proxy import OwnProxyCaller
from cbench_server.systems.predictions import Predictions
from cbench_server.types import Evaluator

Kind = Literal["process", "memory"]
Sweep = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Given:
    """One object, and the reference that stands for it in a spec."""

    system: Any
    ref: SystemRef


def given_systems(
    systems: Any, kind: Kind, sweep: Sweep | None, direct: OpenAIProxy | None
) -> list[Given]:
    """Refer to the systems that were given, with a sweep's points in the place of what is swept."""
    found: list[Given] = []
    option, values = _checked_sweep(sweep)
    listed = [*systems] if isinstance(systems, list | tuple) else systems
    place = _swept_place(listed, kind, option) if option else None
    may_be_class = kind == "memory"
    if place is None:
        whole = components(listed, _word(kind), may_be_class=may_be_class)
        found = [Given(each, _ref(each, kind)) for each in whole]
    else:
        swept = listed[place]
        others = components(
            [*listed[:place], *listed[place + 1 :]], _word(kind), may_be_class=may_be_class
        )
        found = [Given(each, _ref(each, kind)) for each in others]
        found[place:place] = [_point(swept, kind, option, value) for value in values]
    if direct is not None:
        _check_model(direct, "direct")
        found.append(Given(direct, SystemRef(proxy=model_ref(direct), role="direct")))
    return found


def _word(kind: Kind) -> str:
    return "memory system" if kind == "memory" else "system"


def _ref(system: Any, kind: Kind) -> SystemRef:
    name = _name(system)
    if isinstance(system, OpenAIProxy):
        return SystemRef(name=name, proxy=model_ref(system))
    known: Mapping[str, Any] = MEMORY_BUILTINS if kind == "memory" else BUILTINS
    maker = system.func if isinstance(system, functools.partial) else system
    made = maker if inspect.isclass(maker) else type(maker)
    builtin = next((each for each, factory in known.items() if factory is made), "")
    return SystemRef(name=name, builtin=builtin)


def _name(system: Any) -> str:
    name = name_of(system)
    if name is None and is_factory(system):
        return str(system().name)
    if name is None:
        raise InvalidInput(f"{type(system).__name__} is not a memory system: it has no name.")
    return name


def model_ref(proxy: OpenAIProxy) -> ModelRef:
    """Refer to the model that a proxy asks."""
    return ModelRef(
        proxy.client.endpoint,
        proxy.client.model,
        options=dict(proxy.client.extra_body),
        system_prompt=proxy.system_prompt or "",
        price=proxy.price,
    )


def check_reader(reader: OpenAIProxy | None) -> None:
    """Refuse a reader that is none."""
    if reader is not None:
        _check_model(reader, "reader")


def _check_model(model: Any, argument: str) -> None:
    if not isinstance(model, OpenAIProxy):
        raise InvalidInput(
            f"{argument} is {model!r:.60} of type {type(model).__name__}; give the model as "
            f"OpenAIProxy(URL, MODEL)."
        )
    if model.builds_messages:
        raise InvalidInput(
            f"{argument} has build_messages, and a {argument} is asked with the dataset's prompt; "
            "leave it out."
        )


# Sweeps.


def _checked_sweep(sweep: Sweep | None) -> tuple[str, list[float]]:
    if sweep is None:
        return "", []
    if not isinstance(sweep, Mapping) or len(sweep) != 1:
        raise InvalidInput(
            f'sweep is {sweep!r:.60}; give one option and its numbers: {{"ratio": [0.1, 0.5]}}.'
        )
    ((option, values),) = sweep.items()
    if not values or isinstance(values, str) or not isinstance(values, Sequence):
        raise InvalidInput(f"the sweep of {option} is over {values!r:.60}; give a list of numbers.")
    refuse_twice(option, values)
    return option, [*values]


def _swept_place(systems: Any, kind: Kind, option: str) -> int | None:
    """Find what is made anew for every value: the one class or function, else the one proxy."""
    listed = systems if isinstance(systems, list) else []
    makers = [place for place, each in enumerate(listed) if _is_maker(each)]
    proxies = [place for place, each in enumerate(listed) if isinstance(each, OpenAIProxy)]
    if kind == "memory" and len(makers) > 1:
        # A class among them may be a system as it is; one that takes the option is meant.
        makers = [place for place in makers if _takes(listed[place], option)]
    found = makers or proxies
    if len(found) == 1:
        return found[0]
    what = "several systems" if found else "no system"
    raise InvalidSpec(
        f"the sweep of {option} is of one system, and {what} can be made with it. Give a class "
        f"or a function that takes {option}, such as [Mine], and all others as objects."
    )


def _is_maker(system: Any) -> bool:
    return inspect.isclass(system) or inspect.isroutine(system) or _is_partial(system)


def _is_partial(system: Any) -> bool:
    return isinstance(system, functools.partial)


def _takes(maker: Callable[..., Any], option: str) -> bool:
    try:
        return option in inspect.signature(maker).parameters
    except (TypeError, ValueError):
        return False


def _point(swept: Any, kind: Kind, option: str, value: float) -> Given:
    if isinstance(swept, OpenAIProxy):
        ref = _ref(swept, kind)
        assert ref.proxy is not None
        proxy = replace(ref.proxy, options={**ref.proxy.options, option: value})
        ref = replace(ref, proxy=proxy, swept_option=option)
        name = _point_name(swept.name, ref)
        return Given(swept.with_body(name, **{option: value}), replace(ref, name=name))
    made = functools.partial(swept, **{option: value})
    try:
        sample = made()
    except TypeError as error:
        who = swept.__name__ if not _is_partial(swept) else repr(swept)
        raise InvalidSpec(f"{who} cannot be made with {option}={value}: {error}") from error
    ref = replace(_ref(sample, kind), options={option: value}, swept_option=option)
    components([sample], _word(kind))
    # Conversations of a memory have an object each.
    system = made if kind == "memory" else sample
    return Given(system, replace(ref, name=_point_name(ref.name, ref)))


def _point_name(system: str, ref: SystemRef) -> str:
    try:
        return point_name(system, ref)
    except (TypeError, ValueError):
        # What is no number is refused by name, with the whole of the sweep.
        return system


# What is called.


def with_objects(given: Sequence[Given], spec: RunSpec) -> dict[str, Given]:
    """Return all systems of a spec by name; it may have gained some that are built in."""
    named: dict[str, Given] = {}
    for place, ref in enumerate(spec.systems):
        if place < len(given):
            system = given[place].system
        elif spec.kind == "memory":
            system = registry.create_memory_system(ref.builtin, ref.options)
        else:
            system = registry.create_system(ref.builtin, ref.options)
        name = ref.name or ref.builtin
        named[name] = Given(system, replace(ref, name=name))
    return named


def is_asked_here(system: Any) -> bool:
    """Whether a system is a model which is asked with the dataset's prompt."""
    return type(system) is OpenAIProxy and not system.builds_messages


def caller_of(given: Given, kind: Kind, workers: int) -> Caller:
    """Return what calls a system, with so many threads."""
    name, location = given.ref.name, "builtin" if given.ref.builtin else "in-process"
    if isinstance(given.system, Predictions):
        location = PREDICTIONS
    if kind == "memory":
        return InProcessMemoryCaller(given.system, workers=workers, name=name, location=location)
    if is_asked_here(given.system):
        return OwnProxyCaller(given.system, name)
    return InProcessCaller(given.system, workers=workers, name=name, location=location)


def own_prices(named: Mapping[str, Given]) -> dict[str, PriceRef]:
    """Return the prices of proxies that ask by themselves, and only tell what they used."""
    return {
        name: given.system.price
        for name, given in named.items()
        if isinstance(given.system, OpenAIProxy)
        and given.system.price is not None
        and not is_asked_here(given.system)
    }


class LocalFinder:
    """Finds what is built in, which is all that a local evaluation looks for by name."""

    async def find_systems(self, ref: SystemRef, kind: str) -> list[Caller]:
        """See Finder."""
        if kind == "memory":
            memory = registry.create_memory_system(ref.builtin, ref.options)
            return [InProcessMemoryCaller(memory, name=ref.name, location="builtin")]
        system = registry.create_system(ref.builtin, ref.options)
        return [InProcessCaller(system, inline=True, name=ref.name, location="builtin")]

    async def spread(self, spec: RunSpec) -> Any:
        """See Finder."""
        raise NotImplementedError

    async def find_reader(self, ref: ModelRef) -> Any:
        """See Finder."""
        raise NotImplementedError

    async def find(self, ref: Any) -> Evaluator:
        """See Finder."""
        raise NotImplementedError

    async def release(self, evaluator: Evaluator) -> None:
        """See Finder: an evaluator is its user's."""
