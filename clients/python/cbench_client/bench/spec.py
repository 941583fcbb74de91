"""Run specifications from plain dicts."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from google.protobuf.message import Message

from cbench_client.errors import ClientError, InvalidSpec
from cbench_client.messages import convert

M = TypeVar("M", bound=Message)


def message_from_dict(message: M, fields: Mapping[str, Any], path: str = "") -> M:
    """Fill a message such as `RunSpec` from a dict with the same field names.

    Spans are seconds, options are plain values, enum values may be named
    without their prefix (`"memory"`), and None means unset.
    """
    known = message.DESCRIPTOR.fields_by_name
    given: dict[str, str] = {}
    for name, value in fields.items():
        if name not in known:
            close = get_close_matches(str(name), known, 1)
            hint = f' Did you mean "{close[0]}"?' if close else f" Known: {', '.join(known)}."
            raise InvalidSpec(f'there is no field "{path}{name}".{hint}')
        if value is None:
            continue
        if choice := known[name].containing_oneof:
            other = given.setdefault(choice.name, name)
            if other != name:
                whole = f'"{path.removesuffix(".")}"' if path else "this"
                raise InvalidSpec(f"{whole} gives both {other} and {name}; give one.")
        _set(message, known[name], value, f"{path}{name}")
    return message


def _set(message: Message, field: Any, value: Any, path: str) -> None:
    try:
        if field.message_type is None:
            _set_plain(message, field, value)
        elif field.message_type.GetOptions().map_entry:
            _set_map(getattr(message, field.name), field, value, path)
        elif field.is_repeated:
            for position, item in enumerate(value):
                added = getattr(message, field.name).add()
                _fill(added, item, f"{path}[{position}]")
        else:
            target = getattr(message, field.name)
            target.SetInParent()
            _fill(target, value, path)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        if isinstance(error, ClientError):
            raise
        raise InvalidSpec(f'field "{path}" cannot be {value!r}: {error}') from None


def _set_plain(message: Message, field: Any, value: Any) -> None:
    if field.is_repeated:
        if isinstance(value, str):
            raise TypeError("it is a list")
        getattr(message, field.name).extend(value)
    elif field.enum_type is not None and isinstance(value, str):
        numbers = field.enum_type.values_by_name
        prefix = next(iter(numbers)).removesuffix("UNSPECIFIED")
        name = value.upper()
        found = numbers.get(name) or numbers.get(prefix + name)
        if found is None:
            raise ValueError(f"it is one of {', '.join(numbers)}")
        setattr(message, field.name, found.number)
    else:
        setattr(message, field.name, value)


def _set_map(target: Any, field: Any, value: Mapping[str, Any], path: str) -> None:
    if field.message_type.fields_by_name["value"].message_type is None:
        target.update(value)
    else:
        convert.fields_to_proto(value, target, f"{path}.")


def _fill(target: Any, value: Any, path: str) -> None:
    if isinstance(value, Message):
        target.CopyFrom(value)
    elif target.DESCRIPTOR.full_name == "google.protobuf.Duration":
        target.FromNanoseconds(round(float(value) * 1e9))
    elif isinstance(value, Mapping):
        message_from_dict(target, value, f"{path}.")
    else:
        raise TypeError("it is a dict")
