"""Details of a status: the reason and the field to blame, as `google.rpc` has them.

The messages are described here by their field numbers, since the package that has
them would be one more dependency for two of its fields.
"""

from typing import Any

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
    add(
        file.message_type,
        "ErrorInfo",
        ("reason", 1, _TEXT, _ONE, ""),
        ("domain", 2, _TEXT, _ONE, ""),
    )
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


def encode_details(code: int, message: str, reason: str, field: str) -> bytes:
    """Encode a status with its reason, and with the path of the field that is to blame, if any."""
    status = _STATUS(code=code, message=message)
    status.details.add().Pack(_ERROR_INFO(reason=reason, domain=DOMAIN))
    if field:
        request = _BAD_REQUEST()
        request.field_violations.add(field=field, description=message)
        status.details.add().Pack(request)
    return bytes(status.SerializeToString())


def field_to_blame(details: bytes) -> str:
    """Return the path of the first field that a status blames; empty if it blames none."""
    request = _BAD_REQUEST()
    try:
        for each in _STATUS.FromString(details).details:
            if each.Unpack(request) and request.field_violations:
                return str(request.field_violations[0].field)
    except DecodeError:
        # Details are a comfort; the status itself is known.
        return ""
    return ""
