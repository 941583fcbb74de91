import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FailureOrigin(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAILURE_ORIGIN_UNSPECIFIED: _ClassVar[FailureOrigin]
    FAILURE_ORIGIN_SYSTEM: _ClassVar[FailureOrigin]
    FAILURE_ORIGIN_EVALUATOR: _ClassVar[FailureOrigin]
    FAILURE_ORIGIN_TRANSPORT: _ClassVar[FailureOrigin]
    FAILURE_ORIGIN_DAEMON: _ClassVar[FailureOrigin]
    FAILURE_ORIGIN_DATASET: _ClassVar[FailureOrigin]
    FAILURE_ORIGIN_READER: _ClassVar[FailureOrigin]
FAILURE_ORIGIN_UNSPECIFIED: FailureOrigin
FAILURE_ORIGIN_SYSTEM: FailureOrigin
FAILURE_ORIGIN_EVALUATOR: FailureOrigin
FAILURE_ORIGIN_TRANSPORT: FailureOrigin
FAILURE_ORIGIN_DAEMON: FailureOrigin
FAILURE_ORIGIN_DATASET: FailureOrigin
FAILURE_ORIGIN_READER: FailureOrigin

class Failure(_message.Message):
    __slots__ = ("origin", "reason", "message", "retryable", "retry_delay", "stack_trace", "attempts", "field")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_DELAY_FIELD_NUMBER: _ClassVar[int]
    STACK_TRACE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    origin: FailureOrigin
    reason: str
    message: str
    retryable: bool
    retry_delay: _duration_pb2.Duration
    stack_trace: str
    attempts: int
    field: str
    def __init__(self, origin: _Optional[_Union[FailureOrigin, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., retryable: bool = ..., retry_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., stack_trace: _Optional[str] = ..., attempts: _Optional[int] = ..., field: _Optional[str] = ...) -> None: ...
