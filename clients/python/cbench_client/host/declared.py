"""Options of a user's method: which it declares, and how it gets them.

A method says so in one of these ways:

- a parameter `options` whose annotation is a dataclass or a TypedDict: its fields are the
  options, and the method gets an object of it;
- a parameter `options` of any other kind: the method gets every option, as a dict;
- further parameters, such as `*, ratio: float = 0.5`: each is an option;
- `**others`: the method gets every option that it does not name, by its name.

A method with none of these takes no options. What is named has its type checked; the
rest is handed over as it came, `--option k=5` as a number and `--option k=five` as text.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any

from cbench_client.errors import NotServable, RemoteFailure
from cbench_client.messages.options import (
    UNSET,
    DeclaredOption,
    DeclaredOptions,
    UnsuitedOption,
)

_PLAIN = (bool, int, float, str, list, dict)


@dataclasses.dataclass(frozen=True)
class Option:
    """What an annotation cannot say of an option: `Annotated[float, Option("...", minimum=0)]`."""

    description: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] = ()


class MethodOptions:
    """The options of one method."""

    def __init__(self, method: Callable[..., Any], known: Collection[str], positional: int) -> None:
        """`known` are the keywords of the contract; `positional` counts its other arguments."""
        self._whole = False
        self._filled: frozenset[str] = frozenset()
        self._record: type | None = None
        self.declared = DeclaredOptions()
        try:
            parameters, method = _parameters(method)
        except (TypeError, ValueError):
            return
        hints = _hints(method)
        keywords = [
            each
            for each in list(parameters.values())[_leading(parameters, positional) :]
            if each.name in _keyword_names(parameters)
        ]
        if "options" in parameters:
            self._whole = True
            self._record, self.declared = _whole(hints.get("options"))
        else:
            named = [each for each in keywords if each.name not in known]
            self.declared = DeclaredOptions(
                tuple(_option(each.name, hints.get(each.name), _default(each)) for each in named),
                any(each.kind is each.VAR_KEYWORD for each in parameters.values()),
            )
            if self.declared.accepts_others:
                self._filled = _keyword_names(parameters) - frozenset(self.declared.names)

    @property
    def is_strict(self) -> bool:
        """Whether it names its options, so that others are mistakes."""
        return bool(self.declared.options) and not self.declared.accepts_others

    def arguments(self, given: Mapping[str, Any], who: str, strict: bool) -> dict[str, Any]:
        """Return the keyword arguments that carry these options."""
        if self.is_strict and not strict:
            # Another method of the same object takes the others.
            given = {name: given[name] for name in given if self.declared.takes(name)}
        try:
            if filled := next((name for name in given if name in self._filled), None):
                raise UnsuitedOption(
                    filled, f'{who} has no option "{filled}": its method is called with one.'
                )
            taken = self.declared.taken(given, who) if self.declared.options else dict(given)
        except UnsuitedOption as error:
            raise RemoteFailure(str(error), reason="INVALID_ARGUMENT") from error
        if self._record is not None:
            try:
                return {"options": self._record(**taken)}
            except (TypeError, ValueError) as error:
                raise RemoteFailure(f"{who}: {error}", reason="INVALID_ARGUMENT") from error
        if self._whole:
            return {"options": taken}
        return taken if self.declared != DeclaredOptions() else {}


def _parameters(
    method: Callable[..., Any],
) -> tuple[Mapping[str, inspect.Parameter], Callable[..., Any]]:
    """Return the parameters of a method, and the function that says them.

    A decorator that hides the signature of what it decorates, `*args, **kwargs`, holds that
    function in its closure, and hands on what it is given.
    """
    parameters = inspect.signature(method).parameters
    kinds = {each.kind for each in parameters.values()}
    function = getattr(method, "__func__", method)
    if kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
        inner = [each for each in cells if inspect.isfunction(each)]
        if len(inner) == 1:
            behind = inner[0].__get__(method.__self__) if inspect.ismethod(method) else inner[0]
            return _parameters(behind)
    return parameters, method


def _keyword_names(parameters: Mapping[str, inspect.Parameter]) -> frozenset[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(name for name, each in parameters.items() if each.kind in kinds)


def _leading(parameters: Mapping[str, inspect.Parameter], positional: int) -> int:
    """Count the parameters that the contract's positional arguments fill."""
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(positional, sum(each.kind in places for each in parameters.values()))


def _hints(method: Callable[..., Any]) -> dict[str, Any]:
    function: Any = method if inspect.isroutine(method) else type(method).__call__
    if inspect.isclass(method):
        function = method.__init__
    try:
        return typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except Exception:
        # Names that exist for type checkers only; what is not known is not checked.
        return {}


def _whole(hint: Any) -> tuple[type | None, DeclaredOptions]:
    kind = _without_none(hint)[0]
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        required = kind.__required_keys__
        return None, DeclaredOptions(
            tuple(
                _option(name, _without_marks(hint), _REQUIRED if name in required else UNSET)
                for name, hint in hints.items()
            )
        )
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return kind, DeclaredOptions(
            tuple(
                _option(each.name, hints.get(each.name), _field_default(each))
                for each in dataclasses.fields(kind)
                if each.init
            )
        )
    return None, DeclaredOptions(accepts_others=True)


_REQUIRED: Any = object()


def _field_default(field: "dataclasses.Field[Any]") -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return _REQUIRED


def _default(parameter: inspect.Parameter) -> Any:
    return _REQUIRED if parameter.default is parameter.empty else parameter.default


def _option(name: str, hint: Any, default: Any) -> DeclaredOption:
    said = next((each for each in getattr(hint, "__metadata__", ()) if type(each) is Option), None)
    said = said or Option()
    kind, nullable = _without_none(hint)
    choices = said.choices
    if typing.get_origin(kind) is typing.Literal:
        choices = typing.get_args(kind)
        kinds = {type(each) for each in choices}
        kind = kinds.pop() if len(kinds) == 1 else None
    plain = typing.get_origin(kind) or kind
    if plain in (tuple, Mapping):
        plain = list if plain is tuple else dict
    shown = default.value if isinstance(default, Enum) else default
    if isinstance(shown, tuple):
        shown = list(shown)
    if shown is not _REQUIRED and not isinstance(shown, (*_PLAIN, type(None))):
        shown = UNSET
    if (said.minimum is not None or said.maximum is not None) and plain not in (int, float):
        raise NotServable(f'the option "{name}" has a range, and no number as its type.')
    return DeclaredOption(
        name,
        plain if plain in _PLAIN else None,
        said.description,
        default=UNSET if shown is _REQUIRED else shown,
        required=default is _REQUIRED,
        minimum=said.minimum,
        maximum=said.maximum,
        choices=tuple(choices),
        nullable=nullable or shown is None,
    )


def _without_marks(hint: Any) -> Any:
    """Take `Required` and `NotRequired` off a field of a TypedDict."""
    while typing.get_origin(hint) in (typing.Required, typing.NotRequired):
        (hint,) = typing.get_args(hint)
    return hint


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return a type without `Annotated` and `None`, and whether None was among it."""
    if hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return hint, False
    others = [each for each in typing.get_args(hint) if each is not type(None)]
    is_nullable = len(others) < len(typing.get_args(hint))
    return (others[0] if len(others) == 1 else None), is_nullable
