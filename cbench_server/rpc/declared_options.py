"""Declared options of the systems and evaluators of a run: checked, and spread over its systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cbench_client.host.declared import MethodOptions
from cbench_client.messages.options import DeclaredOptions, UnsuitedOption
from cbench_server.errors import InvalidSpec, entry_of
from cbench_server.registry import Registry, is_factory
from cbench_server.spec import Options, RunNote, SystemRef

NOT_TAKEN = "OPTION_NOT_TAKEN"
NOT_CHECKED = "OPTION_NOT_CHECKED"


@dataclass(frozen=True)
class Taker:
    """A system of a run: the reference that means it alone, and what it declares."""

    place: int
    """Which of the spec's systems it is."""
    ref: SystemRef
    name: str
    declared: DeclaredOptions | None
    """None where it does not say, and takes whatever it is given."""

    def takes(self, option: str) -> bool:
        """Whether it may be given an option of this name."""
        return self.declared is None or self.declared.takes(option)

    def unchecked(self, options: Options) -> list[str]:
        """Return those of its options whose names nobody can tell from a slip of the pen."""
        known = self.declared.names if self.declared else ()
        return [name for name in options if name not in known]


def builtin_options(registry: Registry, kind: str, name: str) -> DeclaredOptions:
    """Return the options that a registered component takes: its constructor's parameters."""
    component = registry.get(kind, name)
    if not is_factory(component):
        return DeclaredOptions()
    return MethodOptions(component, (), 0).declared


def checked_options(declared: DeclaredOptions | None, given: Options, who: str) -> Options:
    """Return options as they are sent; raise InvalidSpec for what a component does not take."""
    if declared is None:
        return given
    try:
        return declared.taken(given, who)
    except UnsuitedOption as error:
        raise InvalidSpec(str(error), field=entry_of("options", error.option)) from error


def spread(
    takers: Sequence[Taker], shared: Mapping[str, Any]
) -> tuple[list[tuple[int, SystemRef]], tuple[RunNote, ...]]:
    """Give each system those of the run's options that it takes.

    Returns the references with their places, and notes on systems that lack
    options or take some without having named them. One that no system takes
    raises InvalidSpec.
    """
    for name in shared:
        if not any(each.takes(name) for each in takers):
            raise InvalidSpec(_taken_by_none(name, takers), field=entry_of("spec.options", name))
    refs, notes = [], []
    unchecked: dict[tuple[bool, str], list[str]] = {}
    for each in takers:
        own = {name: value for name, value in shared.items() if each.takes(name)}
        ref = _with(each.ref, own)
        refs.append((each.place, ref))
        if what := ", ".join(f'"{name}"' for name in each.unchecked(ref.options)):
            unchecked.setdefault((each.declared is None, what), []).append(each.name)
        if lacking := [name for name in shared if name not in own]:
            what = ", ".join(f'"{name}"{_near(name, each)}' for name in lacking)
            text = f"{each.name} has no option {what} and ran without."
            notes.append(RunNote(NOT_TAKEN, text, each.name))
    notes += [_not_checked(names, *how) for how, names in unchecked.items()]
    return refs, tuple(notes)


def _not_checked(names: Sequence[str], is_silent: bool, what: str) -> RunNote:
    if len(names) > 1:
        how = "do not declare their options" if is_silent else "take any option"
        return RunNote(NOT_CHECKED, f"{', '.join(names)} {how}; {what} went to them unchecked.")
    how = "does not declare its options" if is_silent else "takes any option"
    return RunNote(NOT_CHECKED, f"{names[0]} {how}; {what} went to it unchecked.", names[0])


def _near(name: str, taker: Taker) -> str:
    hint = taker.declared.hint(name) if taker.declared else ""
    return f" ({hint.removeprefix('; ')})" if "did you mean" in hint else ""


def _with(ref: SystemRef, shared: Options) -> SystemRef:
    if ref.proxy is not None:
        # Further keys of its request body.
        proxy = replace(ref.proxy, options={**shared, **ref.proxy.options})
        return replace(ref, proxy=proxy)
    return replace(ref, options={**shared, **ref.options})


def _taken_by_none(name: str, takers: Sequence[Taker]) -> str:
    everything = DeclaredOptions(
        tuple(option for each in takers if each.declared for option in each.declared.options)
    )
    if "did you mean" in (hint := everything.hint(name)):
        return f'no system of the run has the option "{name}"{hint}'
    known = [
        f"{each.name} has {', '.join(each.declared.names) or 'none'}"
        for each in takers
        if each.declared
    ]
    return f'no system of the run has the option "{name}": {"; ".join(known)}.'
