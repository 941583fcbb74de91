"""Sweeps: one system at several values of one option, as arms of the same run.

The whole context is an arm as well, and so are cuts to the lengths that the
points left (`runs/controls.py`), so that all curves stand on the same examples.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cbench_server.errors import InvalidSpec, blaming
from cbench_server.runs.direct import DIRECT
from cbench_server.spec import ModelRef, Options, RunSpec, SystemRef

WHOLE = {"process": "identity", "memory": "full-history"}
"""The built-in system that leaves the context whole, by kind of run."""


def with_whole_arm(spec: RunSpec) -> RunSpec:
    """Add the whole context to a sweep that lacks it; a proxy's is its direct arm."""
    points = [ref for ref in spec.systems if ref.swept_option]
    whole = WHOLE[spec.kind]
    has_whole = any(ref.builtin == whole and not ref.swept_option for ref in spec.systems)
    if not points or has_whole or any(ref.proxy is not None for ref in points):
        return spec
    return replace(spec, systems=(*spec.systems, SystemRef(builtin=whole, role="control")))


def check_sweep(spec: RunSpec) -> None:
    """Refuse points that are no curve of one system, naming the value."""
    points = [ref for ref in spec.systems if ref.swept_option]
    if not points:
        return
    first = next(place for place, ref in enumerate(spec.systems) if ref.swept_option)
    with blaming(f"spec.systems[{first}].swept_option"):
        _check_points(points)


def _check_points(points: Sequence[SystemRef]) -> None:
    options = [*dict.fromkeys(ref.swept_option for ref in points)]
    if len(options) > 1:
        raise InvalidSpec(f"a run sweeps one option; got {' and '.join(options)}.")
    (option,) = options
    values = [_checked_value(ref, option) for ref in points]
    first = _rest(points[0], option)
    for ref in points[1:]:
        if _rest(ref, option) != first:
            raise InvalidSpec(
                f"a run sweeps one system; {_who(points[0])} and {_who(ref)} differ in more than "
                f"{option}. Start a run for each."
            )
    if len(values) < 2:
        raise InvalidSpec(
            f"a sweep needs two values or more; {option}={values[0]:g} is one. Add another."
        )
    refuse_twice(option, values)


def refuse_twice(option: str, values: Sequence[Any]) -> None:
    """Refuse a sweep that has a value twice."""
    for value in values:
        if values.count(value) > 1:
            shown = f"{value:g}" if isinstance(value, int | float) else repr(value)
            raise InvalidSpec(f"the sweep has {option}={shown} twice; leave one out.")


def options_of(ref: SystemRef) -> Options:
    """Return the settings of a system; those of a proxy are keys of its requests."""
    return ref.options if ref.proxy is None else ref.proxy.options


def point_name(system: str, ref: SystemRef) -> str:
    """Name a point of a sweep: the system, the option and its value."""
    return f"{system}:{ref.swept_option}={options_of(ref)[ref.swept_option]:g}"


def sweep_config(refs: Mapping[str, SystemRef], kind: str) -> dict[str, Any] | None:
    """Record the points of a sweep and its whole arm, by their names in the run."""
    points = [(name, ref) for name, ref in refs.items() if ref.swept_option]
    if not points:
        return None
    option = points[0][1].swept_option
    is_proxy = points[0][1].proxy is not None
    whole = next(
        (
            name
            for name, ref in refs.items()
            if (ref.role == DIRECT if is_proxy else ref.builtin == WHOLE[kind])
            and not ref.swept_option
        ),
        "",
    )
    ordered = sorted(points, key=lambda each: options_of(each[1])[option])
    return {
        "option": option,
        "whole": whole,
        "is_reported": is_proxy,
        "points": [[name, float(options_of(ref)[option])] for name, ref in ordered],
    }


def _checked_value(ref: SystemRef, option: str) -> float:
    if ref.role:
        raise InvalidSpec(f"{_who(ref)} is there as {ref.role}; only systems under test are swept.")
    if ref.predictions:
        raise InvalidSpec(f"predictions take no options, so {option} cannot be swept.")
    known = options_of(ref)
    if option not in known:
        raise InvalidSpec(
            f'the sweep varies "{option}", and {_who(ref)} has no value of it among its options.'
        )
    value = known[option]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise InvalidSpec(f'a sweep is over numbers; {option}="{value}" is none.')
    return float(value)


def _rest(ref: SystemRef, option: str) -> SystemRef:
    """Return what points must have in common."""

    def without(options: Options) -> Options:
        return {name: value for name, value in options.items() if name != option}

    proxy: ModelRef | None = ref.proxy
    if proxy is not None:
        proxy = replace(proxy, options=without(proxy.options))
    return replace(ref, name="", options=without(ref.options), proxy=proxy)


def _who(ref: SystemRef) -> str:
    place = ref.proxy.base_url if ref.proxy is not None else ""
    return f'"{ref.name or ref.builtin or ref.attached or ref.served_name or ref.target or place}"'
