"""What a daemon knows of the contract, and so which fields of a request it would ignore.

An older daemon skips what it does not know, without a word. So it is asked, by
server reflection, which fields it has, before one is sent that it may lack.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from cbench_client.remote.status import is_lost

_REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
_SYMBOL = b"cbench.v1.Bench"
# ServerReflectionRequest.file_containing_symbol
_REQUEST = bytes([4 << 3 | 2, len(_SYMBOL)]) + _SYMBOL
# ServerReflectionResponse.file_descriptor_response, which is encoded as a FileDescriptorSet.
_FILES = 4
_FOR_NOW = frozenset((grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED))
_RECORDED = frozenset(("cbench.v1.SystemRef.log", "cbench.v1.SystemRef.revision"))
"""Fields that a daemon only keeps with the run; one without them does all that was asked."""


@dataclass(frozen=True)
class DaemonContract:
    """The members of a daemon's messages and enums, by number, and its methods by name."""

    members: dict[str, frozenset[int]]
    methods: frozenset[str]

    def lacks(self, method: str) -> bool:
        """Whether it says what methods it has, and this is none of them."""
        return bool(self.methods) and method not in self.methods

    def ignored(self, request: Message) -> list[str]:
        """Return the paths of what is set in a request and would be ignored.

        Clears what need not be known, since a daemon may refuse what it does not know.
        """
        return list(self._ignored(request, ""))

    def _ignored(self, message: Message, above: str) -> Iterator[str]:
        known = self.members.get(message.DESCRIPTOR.full_name)
        if known is None:
            return
        for field, value in message.ListFields():
            path = f"{above}{field.name}"
            if field.number not in known:
                if field.full_name in _RECORDED:
                    message.ClearField(field.name)
                else:
                    yield path
            else:
                yield from self._below(field, value, path)

    def _below(self, field: FieldDescriptor, value: Any, path: str) -> Iterator[str]:
        if field.enum_type is not None:
            known = self.members.get(field.enum_type.full_name)
            values = value if field.is_repeated else [value]
            if known is not None and not known.issuperset(values):
                yield path
        elif field.message_type is not None:
            for place, each in _messages(field, value):
                yield from self._ignored(each, f"{path}{place}.")


_SAYS_NOTHING = DaemonContract({}, frozenset())


def ask_contract(channel: Any, timeout: float) -> DaemonContract | None:
    """Ask a daemon what it knows; None if it does not answer now, empty if it never says."""
    method = channel.stream_stream(_REFLECTION, request_serializer=None, response_deserializer=None)
    answers = method(iter((_REQUEST,)), timeout=timeout)
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(_field(next(answers), _FILES))
    except grpc.RpcError as error:
        return None if is_lost(error) or error.code() in _FOR_NOW else _SAYS_NOTHING
    except (DecodeError, StopIteration, ValueError, IndexError):
        return _SAYS_NOTHING
    finally:
        answers.cancel()
    members: dict[str, frozenset[int]] = {}
    for file in files.file:
        _add(members, file.package, file.message_type, file.enum_type)
    services = [service for file in files.file for service in file.service]
    return DaemonContract(
        members,
        frozenset(
            method.name
            for service in services
            if service.name == "Bench"
            for method in service.method
        ),
    )


def _add(
    members: dict[str, frozenset[int]],
    above: str,
    messages: Iterable[descriptor_pb2.DescriptorProto],
    enums: Iterable[descriptor_pb2.EnumDescriptorProto],
) -> None:
    for enum in enums:
        members[f"{above}.{enum.name}"] = frozenset(value.number for value in enum.value)
    for message in messages:
        name = f"{above}.{message.name}"
        members[name] = frozenset(field.number for field in message.field)
        _add(members, name, message.nested_type, message.enum_type)


def _messages(field: FieldDescriptor, value: Any) -> Iterator[tuple[str, Message]]:
    """Return the messages of a field, each with its place among several."""
    kind = field.message_type
    assert kind is not None
    if kind.GetOptions().map_entry:
        if kind.fields_by_name["value"].message_type is not None:
            for key in value:
                yield f'["{key}"]', value[key]
    elif field.is_repeated:
        for place, each in enumerate(value):
            yield f"[{place}]", each
    else:
        yield "", value


def _field(encoded: bytes, number: int) -> bytes:
    """Return the bytes of a field of an encoded message whose fields all have lengths."""
    place = 0
    while place < len(encoded):
        tag, place = _varint(encoded, place)
        size, place = _varint(encoded, place)
        if tag == number << 3 | 2:
            return encoded[place : place + size]
        place += size
    raise ValueError(f"there is no field {number}")


def _varint(encoded: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = encoded[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
