"""Options that components declare: as values, on the wire, and checked."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cbench_client._gen.cbench.v1 import option_pb2
from cbench_client.messages import convert

UNSET: Any = type("Unset", (), {"__repr__": lambda self: "UNSET"})()
"""In the place of a default that an option does not have."""

_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a record",
}
_KINDS: dict[type | None, option_pb2.OptionType] = {
    None: option_pb2.OPTION_TYPE_UNSPECIFIED,
    bool: option_pb2.OPTION_TYPE_BOOL,
    int: option_pb2.OPTION_TYPE_INTEGER,
    float: option_pb2.OPTION_TYPE_NUMBER,
    str: option_pb2.OPTION_TYPE_TEXT,
    list: option_pb2.OPTION_TYPE_LIST,
    dict: option_pb2.OPTION_TYPE_MAP,
}
_TYPES = {kind: type_ for type_, kind in _KINDS.items()}
_FITTING = {bool: bool, int: int, float: int | float, str: str, list: list | tuple, dict: Mapping}


class UnsuitedOption(ValueError):
    """An option that a component does not take, or not with this value."""

    def __init__(self, option: str, message: str) -> None:
        self.option = option
        super().__init__(message)


@dataclass(frozen=True)
class DeclaredOption:
    """One option: its name, and which values it takes."""

    name: str
    kind: type | None = None
    """bool, int, float, str, list or dict; None means any value."""
    description: str = ""
    default: Any = UNSET
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Any, ...] = ()
    nullable: bool = False

    def taken(self, value: Any) -> Any:
        """Return a value as it is handed over, or raise UnsuitedOption."""
        if value is None and self.nullable:
            return None
        if self.kind is not None:
            value = self._typed(value)
        if self.choices and not any(_same(value, each) for each in self.choices):
            near = _near(str(value), map(str, self.choices))
            listed = ", ".join(map(_written, self.choices))
            raise self._refused(value, f"is none of {listed}{near}")
        if self.minimum is not None and not value >= self.minimum:
            raise self._refused(value, f"is below {self.minimum:g}")
        if self.maximum is not None and not value <= self.maximum:
            raise self._refused(value, f"is above {self.maximum:g}")
        return value

    def _typed(self, value: Any) -> Any:
        assert self.kind is not None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.kind is int and is_number and value == value // 1:
            return int(value)
        if self.kind is float and is_number:
            return float(value)
        fits = isinstance(value, _FITTING[self.kind])
        if not fits or (isinstance(value, bool) and self.kind is not bool):
            raise self._refused(value, f"is not {_NAMES[self.kind]}")
        return value

    def _refused(self, value: Any, why: str) -> UnsuitedOption:
        return UnsuitedOption(self.name, f'option "{self.name}": {_written(value)} {why}')

    @property
    def summary(self) -> str:
        """What it takes, in a few words: `ratio: number from 0 to 1, default 0.5`."""
        words = [(_NAMES[self.kind] if self.kind else "any value").removeprefix("a ")]
        if self.choices:
            words = ["one of " + ", ".join(map(_written, self.choices))]
        if self.minimum is not None:
            words.append(f"from {self.minimum:g}")
        if self.maximum is not None:
            words.append(f"up to {self.maximum:g}")
        if self.nullable and self.kind:
            words.append("or null")
        text = f"{self.name}: {' '.join(words)}"
        if self.required:
            return f"{text}, required"
        return text if self.default is UNSET else f"{text}, default {_written(self.default)}"


@dataclass(frozen=True)
class DeclaredOptions:
    """All options that a component takes."""

    options: tuple[DeclaredOption, ...] = ()
    accepts_others: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of those it knows."""
        return tuple(each.name for each in self.options)

    def takes(self, name: str) -> bool:
        """Whether an option of this name is taken."""
        return self.accepts_others or name in self.names

    def taken(self, given: Mapping[str, Any], who: str) -> dict[str, Any]:
        """Return options as they are handed over; raise UnsuitedOption for the first that is not.

        `who` is the component, such as `system "bm25"`.
        """
        known = {each.name: each for each in self.options}
        found = {}
        for name, value in given.items():
            if name in known:
                try:
                    found[name] = known[name].taken(value)
                except UnsuitedOption as error:
                    raise UnsuitedOption(name, f"{who}: {error}") from None
            elif self.accepts_others:
                found[name] = value
            else:
                raise UnsuitedOption(name, f'{who} has no option "{name}"{self.hint(name)}')
        for each in self.options:
            if each.required and each.name not in given:
                raise UnsuitedOption(each.name, f'{who} needs the option "{each.name}".')
        return found

    def hint(self, name: str) -> str:
        """Say what to write in the place of a name that is not known."""
        has = f"It has: {', '.join(self.names)}." if self.options else "It takes none."
        return _near(name, self.names) or f". {has}"


def joined(parts: Iterable[DeclaredOptions]) -> DeclaredOptions:
    """Put together what several methods of one component take."""
    each = list(parts)
    options = {option.name: option for part in reversed(each) for option in part.options}
    return DeclaredOptions(tuple(options.values()), any(part.accepts_others for part in each))


def options_to_proto(declared: DeclaredOptions, message: option_pb2.DeclaredOptions) -> None:
    """Encode what a component declares."""
    message.SetInParent()
    message.accepts_others = declared.accepts_others
    for each in declared.options:
        entry = message.options.add(
            name=each.name,
            type=_KINDS[each.kind],
            description=each.description,
            required=each.required,
            minimum=each.minimum,
            maximum=each.maximum,
            nullable=each.nullable,
        )
        if each.default is not UNSET:
            entry.default_value.CopyFrom(convert.value_to_proto(each.default))
        for choice in each.choices:
            entry.choices.add().CopyFrom(convert.value_to_proto(choice))


def declared_options(info: Any) -> DeclaredOptions | None:
    """Decode what a `SystemInfo` or `EvaluatorInfo` declares; None if it does not say."""
    if not info.HasField("declared_options"):
        return None
    message = info.declared_options
    return DeclaredOptions(tuple(map(_option, message.options)), message.accepts_others)


def _option(message: option_pb2.OptionInfo) -> DeclaredOption:
    has_default = message.HasField("default_value")
    return DeclaredOption(
        name=message.name,
        kind=_TYPES.get(message.type),
        description=message.description,
        default=convert.value_from_proto(message.default_value) if has_default else UNSET,
        required=message.required,
        minimum=message.minimum if message.HasField("minimum") else None,
        maximum=message.maximum if message.HasField("maximum") else None,
        choices=tuple(convert.value_from_proto(each) for each in message.choices),
        nullable=message.nullable,
    )


def _same(value: Any, other: Any) -> bool:
    # To Python 1 is True.
    return isinstance(value, bool) is isinstance(other, bool) and bool(value == other)


def _near(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f'; did you mean "{found[0]}"?' if found else ""


def _written(value: Any) -> str:
    """Write a value as `--option` takes it: as JSON."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return f"{value}"  # Bytes have no JSON.
