import datetime

from cbench_client._gen.cbench.v1 import example_pb2 as _example_pb2
from cbench_client._gen.cbench.v1 import system_pb2 as _system_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MemorySystemDescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MemorySystemDescribeResponse(_message.Message):
    __slots__ = ("systems", "sdk")
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    SDK_FIELD_NUMBER: _ClassVar[int]
    systems: _containers.RepeatedCompositeFieldContainer[_system_pb2.SystemInfo]
    sdk: str
    def __init__(self, systems: _Optional[_Iterable[_Union[_system_pb2.SystemInfo, _Mapping]]] = ..., sdk: _Optional[str] = ...) -> None: ...

class ResetRequest(_message.Message):
    __slots__ = ("system", "scope")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    system: str
    scope: str
    def __init__(self, system: _Optional[str] = ..., scope: _Optional[str] = ...) -> None: ...

class ResetResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class IngestRequest(_message.Message):
    __slots__ = ("system", "scope", "turns", "call_id", "options")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    system: str
    scope: str
    turns: _containers.RepeatedCompositeFieldContainer[_example_pb2.Turn]
    call_id: str
    options: _containers.MessageMap[str, _example_pb2.Value]
    def __init__(self, system: _Optional[str] = ..., scope: _Optional[str] = ..., turns: _Optional[_Iterable[_Union[_example_pb2.Turn, _Mapping]]] = ..., call_id: _Optional[str] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ...) -> None: ...

class IngestResponse(_message.Message):
    __slots__ = ("usage", "stored_bytes", "handler_time")
    USAGE_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    HANDLER_TIME_FIELD_NUMBER: _ClassVar[int]
    usage: _system_pb2.Usage
    stored_bytes: int
    handler_time: _duration_pb2.Duration
    def __init__(self, usage: _Optional[_Union[_system_pb2.Usage, _Mapping]] = ..., stored_bytes: _Optional[int] = ..., handler_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class QueryRequest(_message.Message):
    __slots__ = ("system", "scope", "question", "call_id", "budget", "asked_at", "instruction", "options")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    ASKED_AT_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    system: str
    scope: str
    question: str
    call_id: str
    budget: int
    asked_at: str
    instruction: str
    options: _containers.MessageMap[str, _example_pb2.Value]
    def __init__(self, system: _Optional[str] = ..., scope: _Optional[str] = ..., question: _Optional[str] = ..., call_id: _Optional[str] = ..., budget: _Optional[int] = ..., asked_at: _Optional[str] = ..., instruction: _Optional[str] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ...) -> None: ...

class QueryResponse(_message.Message):
    __slots__ = ("response", "usage", "metadata", "context", "context_tokens", "stored_bytes", "retrieval_time", "handler_time")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    RETRIEVAL_TIME_FIELD_NUMBER: _ClassVar[int]
    HANDLER_TIME_FIELD_NUMBER: _ClassVar[int]
    response: str
    usage: _system_pb2.Usage
    metadata: _containers.MessageMap[str, _example_pb2.Value]
    context: str
    context_tokens: int
    stored_bytes: int
    retrieval_time: _duration_pb2.Duration
    handler_time: _duration_pb2.Duration
    def __init__(self, response: _Optional[str] = ..., usage: _Optional[_Union[_system_pb2.Usage, _Mapping]] = ..., metadata: _Optional[_Mapping[str, _example_pb2.Value]] = ..., context: _Optional[str] = ..., context_tokens: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., retrieval_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., handler_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
