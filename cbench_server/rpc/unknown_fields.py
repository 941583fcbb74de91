"""Fields and values of requests that this daemon does not know, which are refused.

protobuf skips fields that it does not know, and values of enums that nobody knows are as good as
none: a newer client would get something else than it asked for.
"""

import functools
from collections.abc import Iterator
from typing import Any, cast

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from cbench_server import __version__
from cbench_server.errors import UnknownField


def refuse_unknown_fields(request: Message) -> None:
    """Raise UnknownField if anything in a request is not known here."""
    for path, kind, number in _unknown_values(request, ""):
        known_values = ", ".join(value.name for value in kind.values)
        raise UnknownField(
            f"value {number} of {kind.name} is not known to this daemon, cbench-server "
            f"{__version__}, which would not do what was asked. It knows {known_values}.",
            field=path,
        )
    known = type(request)()
    known.CopyFrom(request)
    known.DiscardUnknownFields()
    # Most requests have none, and need no walk through their parts.
    if known.ByteSize() == request.ByteSize():
        return
    path, message, number = next(_unknown(request, ""))
    raise UnknownField(
        f"field {number} of {message} is not known to this daemon, cbench-server {__version__}, "
        "which is older than the client that set it and would not do what was asked. Update the "
        "daemon, or leave out what that field asks for.",
        field=path,
    )


def _unknown(message: Message, path: str) -> Iterator[tuple[str, str, int]]:
    """Yield where a field is unknown: the path of its message, that message's name, its number."""
    # It has no types for iterating.
    for field in cast(Any, UnknownFieldSet(message)):
        yield path, message.DESCRIPTOR.name, field.field_number
    for known, value in message.ListFields():
        if known.message_type is not None:
            for place, part in _parts(known, value):
                below = f"{path}.{known.name}{place}" if path else f"{known.name}{place}"
                yield from _unknown(part, below)


def _unknown_values(message: Message, path: str) -> Iterator[tuple[str, Any, int]]:
    """Yield the values of enums that are unknown: their path, their enum, their number."""
    for field, value in message.ListFields():
        if not _may_have_enums(field):
            continue
        below = f"{path}.{field.name}" if path else field.name
        if field.message_type is not None:
            for place, part in _parts(field, value):
                yield from _unknown_values(part, below + place)
            continue
        kind: Any = field.enum_type
        for at, number in enumerate(value if field.is_repeated else [value]):
            if number not in kind.values_by_number:
                yield f"{below}[{at}]" if field.is_repeated else below, kind, number


@functools.cache
def _may_have_enums(field: Any) -> bool:
    """Tell whether a field is an enum, or a message that has one somewhere: few are."""
    seen = set()
    unread = [field]
    while unread:
        each = unread.pop()
        if each.enum_type is not None:
            return True
        if each.message_type is not None and each.message_type.full_name not in seen:
            seen.add(each.message_type.full_name)
            unread += each.message_type.fields
    return False


def _parts(field: Any, value: Any) -> Iterator[tuple[str, Message]]:
    if field.message_type.GetOptions().map_entry:
        if field.message_type.fields_by_name["value"].message_type is not None:
            for key in value:
                yield f'["{key}"]', value[key]
    elif field.is_repeated:
        for place, part in enumerate(value):
            yield f"[{place}]", part
    else:
        yield "", value
