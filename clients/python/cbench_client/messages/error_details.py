"""Details of a status: the reason and the field to blame, as `google.rpc` has them.

The messages are described here by their field numbers, since the package that has
them would be one more dependency for two of its fields.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

KEY = "grpc-status-details-bin"
"""The trailing metadata in which gRPC carries them."""
DOMAIN = "cbench"

_TEXT = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
_NUMBER = descriptor_pb2.FieldDescriptorProto.TYPE_INT32
_MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
_ONE = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
_MANY = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED


def _messages() -> tuple[Any, Any, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="cbench/status_details.proto", package="google.rpc", syntax="proto3"
    )
    file.dependency.append(any_pb2.DESCRIPTOR.name)

    def add(to: Any, name: str, *fields: tuple[str, int, int, int, str]) -> Any:
        message = to.add(name=name)
        for field, number, kind, label, type_name in fields:
            message.field.add(
                name=field, number=number, type=kind, label=label, type_name=type_name or None
            )
        return message

    add(
        file.message_type,
        "Status",
        ("code", 1, _NUMBER, _ONE, ""),
        ("message", 2, _TEXT, _ONE, ""),
        ("details", 3, _MESSAGE, _MANY, ".google.protobuf.Any"),
    )
    info = add(
        file.message_type,
        "ErrorInfo",
        ("reason", 1, _TEXT, _ONE, ""),
        ("domain", 2, _TEXT, _ONE, ""),
        ("metadata", 3, _MESSAGE, _MANY, ".google.rpc.ErrorInfo.MetadataEntry"),
    )
    entry = add(
        info.nested_type,
        "MetadataEntry",
        ("key", 1, _TEXT, _ONE, ""),
        ("value", 2, _TEXT, _ONE, ""),
    )
    entry.options.map_entry = True
    violation = ".google.rpc.BadRequest.FieldViolation"
    bad_request = add(
        file.message_type, "BadRequest", ("field_violations", 1, _MESSAGE, _MANY, violation)
    )
    add(
        bad_request.nested_type,
        "FieldViolation",
        ("field", 1, _TEXT, _ONE, ""),
        ("description", 2, _TEXT, _ONE, ""),
    )
    # A pool of its own: the process may have the real ones as well.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    found = (pool.FindMessageTypeByName(f"google.rpc.{name}") for name in _NAMES)
    status, info, request = (message_factory.GetMessageClass(each) for each in found)
    return status, info, request


_NAMES = ("Status", "ErrorInfo", "BadRequest")
_STATUS, _ERROR_INFO, _BAD_REQUEST = _messages()


class FieldViolation(NamedTuple):
    """A field of a request that is to blame, and why."""

    field: str
    """Its path, such as `spec.systems[1].options["ratio"]`."""
    description: str


class Details(NamedTuple):
    """What a status says besides its code and message."""

    violations: tuple[FieldViolation, ...] = ()
    metadata: Mapping[str, str] = MappingProxyType({})


def encode_details(
    code: int, message: str, reason: str, field: str, metadata: Mapping[str, str]
) -> bytes:
    """Encode a status with its reason, and with the path of the field that is to blame, if any."""
    status = _STATUS(code=code, message=message)
    info = _ERROR_INFO(reason=reason, domain=DOMAIN, metadata=metadata)
    status.details.add().Pack(info)
    if field:
        request = _BAD_REQUEST()
        request.field_violations.add(field=field, description=message)
        status.details.add().Pack(request)
    return bytes(status.SerializeToString())


def decode_details(data: bytes) -> Details:
    """Read the details of a status; empty ones where there are none that can be read."""
    request, info = _BAD_REQUEST(), _ERROR_INFO()
    violations: list[FieldViolation] = []
    metadata: dict[str, str] = {}
    try:
        for each in _STATUS.FromString(data).details:
            if each.Unpack(request):
                violations += [
                    FieldViolation(told.field, told.description)
                    for told in request.field_violations
                ]
            elif each.Unpack(info):
                metadata |= dict(info.metadata)
    except DecodeError:
        # Details are a comfort; the status itself is known.
        return Details()
    return Details(tuple(violations), metadata)
