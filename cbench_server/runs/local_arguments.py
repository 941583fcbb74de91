"""Arguments of a local evaluation: checked, each mistake answered with a sentence."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from cbench_server.contract import name_of, optional_method
from cbench_server.errors import InvalidInput, InvalidSpec

_NEEDS = {
    "system": (("process", "aprocess"), "process(example)"),
    "memory system": (("query", "aquery"), "reset(), ingest(turns) and query(question)"),
    "evaluator": (("score", "assess"), "score(original, processed)"),
    "metric": (("compute", "over"), "compute(rows)"),
}


def components(given: Any, kind: str, *, may_be_class: bool = False) -> list[Any]:
    """Return the components of a kind that were given; refuse what cannot be one."""
    argument = "systems" if kind.endswith("system") else f"{kind}s"
    if isinstance(given, str | dict) or not isinstance(given, Iterable):
        raise InvalidInput(
            f"{argument} is {_shown(given)}; give a list of them, such as [{kind.split()[-1]}]."
        )
    found = list(given)
    for each in found:
        if not (may_be_class and callable(each)):
            _check(each, kind)
    return found


def _check(component: Any, kind: str) -> None:
    methods, needs = _NEEDS[kind]
    if inspect.isclass(component):
        raise InvalidInput(
            f"{component.__name__} is a class, not {_a(kind)}; make one: {component.__name__}(...)."
        )
    if isinstance(component, str):
        method = f"create_{kind.replace(' ', '_')}"
        hint = f' One that is registered: registry.{method}("{component}", {{}}).'
        raise InvalidInput(f'"{component}" is a text, not {_a(kind)}.{hint}')
    if inspect.isroutine(component):
        raise InvalidInput(
            f"{component.__name__} is a function, not {_a(kind)}: put it in a class that has a "
            f"`name` and {needs}."
        )
    missing = "" if name_of(component) is not None else "`name`, a text"
    if not any(optional_method(component, method) for method in methods):
        missing += f"{' and no ' if missing else ''}{needs}"
    if missing:
        raise InvalidInput(f"{_shown(component)} is not {_a(kind)}: it has no {missing}.")


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] == "e" else f"a {kind}"


def _shown(value: Any) -> str:
    return f"{value!r:.60} of type {type(value).__name__}"


def check_names(names: Sequence[str]) -> None:
    """Refuse no systems at all, and systems of one name."""
    if not names:
        raise InvalidSpec("there is no system to evaluate; systems is empty.")
    if len(set(names)) != len(names):
        raise InvalidSpec(f"systems must have different names; got {', '.join(names)}")


def check_numbers(**numbers: float | None) -> None:
    """Refuse counts below 1, and times that are not above 0; none need be timed or asked again."""
    for name, value in numbers.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"{name} must be a number, not {_shown(value)}.")
        if name != "timeout" and not isinstance(value, int):
            raise InvalidInput(f"{name} must be a whole number, not {value:g}.")
        if name == "timeout" and not value > 0:
            raise InvalidSpec(f"timeout must be more than zero seconds, not {value:g}")
        least = 0 if name in ("timed_rows", "asked_again") else 1
        if name != "timeout" and value < least:
            raise InvalidSpec(f"{name} must be at least {least}, not {value}")
