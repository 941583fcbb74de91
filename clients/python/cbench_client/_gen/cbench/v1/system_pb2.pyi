import datetime

from cbench_client._gen.cbench.v1 import example_pb2 as _example_pb2
from cbench_client._gen.cbench.v1 import failure_pb2 as _failure_pb2
from cbench_client._gen.cbench.v1 import option_pb2 as _option_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Capability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAPABILITY_UNSPECIFIED: _ClassVar[Capability]
    CAPABILITY_STREAM: _ClassVar[Capability]
    CAPABILITY_CONVERSATION: _ClassVar[Capability]
CAPABILITY_UNSPECIFIED: Capability
CAPABILITY_STREAM: Capability
CAPABILITY_CONVERSATION: Capability

class SystemDescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SystemDescribeResponse(_message.Message):
    __slots__ = ("systems", "sdk")
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    SDK_FIELD_NUMBER: _ClassVar[int]
    systems: _containers.RepeatedCompositeFieldContainer[SystemInfo]
    sdk: str
    def __init__(self, systems: _Optional[_Iterable[_Union[SystemInfo, _Mapping]]] = ..., sdk: _Optional[str] = ...) -> None: ...

class SystemInfo(_message.Message):
    __slots__ = ("name", "version", "description", "capabilities", "max_concurrency", "location", "declared_options")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    DECLARED_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    description: str
    capabilities: _containers.RepeatedScalarFieldContainer[Capability]
    max_concurrency: int
    location: str
    declared_options: _option_pb2.DeclaredOptions
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., description: _Optional[str] = ..., capabilities: _Optional[_Iterable[_Union[Capability, str]]] = ..., max_concurrency: _Optional[int] = ..., location: _Optional[str] = ..., declared_options: _Optional[_Union[_option_pb2.DeclaredOptions, _Mapping]] = ...) -> None: ...

class ProcessRequest(_message.Message):
    __slots__ = ("system", "example", "call_id", "options", "instruction")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    system: str
    example: _example_pb2.Example
    call_id: str
    options: _containers.MessageMap[str, _example_pb2.Value]
    instruction: str
    def __init__(self, system: _Optional[str] = ..., example: _Optional[_Union[_example_pb2.Example, _Mapping]] = ..., call_id: _Optional[str] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ..., instruction: _Optional[str] = ...) -> None: ...

class ProcessResponse(_message.Message):
    __slots__ = ("fields", "carried_fields", "usage", "handler_time")
    class FieldsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    CARRIED_FIELDS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    HANDLER_TIME_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.MessageMap[str, _example_pb2.Value]
    carried_fields: _containers.RepeatedScalarFieldContainer[str]
    usage: Usage
    handler_time: _duration_pb2.Duration
    def __init__(self, fields: _Optional[_Mapping[str, _example_pb2.Value]] = ..., carried_fields: _Optional[_Iterable[str]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., handler_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("prompt_tokens", "completion_tokens", "cost_usd", "compute_time", "total_tokens", "cached_prompt_tokens", "requests", "abandoned_requests")
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_TIME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    ABANDONED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float
    compute_time: _duration_pb2.Duration
    total_tokens: int
    cached_prompt_tokens: int
    requests: int
    abandoned_requests: int
    def __init__(self, prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., cost_usd: _Optional[float] = ..., compute_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., total_tokens: _Optional[int] = ..., cached_prompt_tokens: _Optional[int] = ..., requests: _Optional[int] = ..., abandoned_requests: _Optional[int] = ...) -> None: ...

class ProcessStreamRequest(_message.Message):
    __slots__ = ("calls", "cancel_call_ids")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_CALL_IDS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[ProcessCall]
    cancel_call_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, calls: _Optional[_Iterable[_Union[ProcessCall, _Mapping]]] = ..., cancel_call_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ProcessCall(_message.Message):
    __slots__ = ("request", "timeout", "traceparent", "tracestate")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    request: ProcessRequest
    timeout: _duration_pb2.Duration
    traceparent: str
    tracestate: str
    def __init__(self, request: _Optional[_Union[ProcessRequest, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ...) -> None: ...

class ProcessStreamResponse(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[ProcessOutcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[ProcessOutcome, _Mapping]]] = ...) -> None: ...

class ProcessOutcome(_message.Message):
    __slots__ = ("call_id", "response", "failure")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    response: ProcessResponse
    failure: _failure_pb2.Failure
    def __init__(self, call_id: _Optional[str] = ..., response: _Optional[_Union[ProcessResponse, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...

class ProcessConversationRequest(_message.Message):
    __slots__ = ("system", "example", "turns", "call_id", "options", "instruction")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    INSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    system: str
    example: _example_pb2.Example
    turns: _containers.RepeatedCompositeFieldContainer[_example_pb2.Turn]
    call_id: str
    options: _containers.MessageMap[str, _example_pb2.Value]
    instruction: str
    def __init__(self, system: _Optional[str] = ..., example: _Optional[_Union[_example_pb2.Example, _Mapping]] = ..., turns: _Optional[_Iterable[_Union[_example_pb2.Turn, _Mapping]]] = ..., call_id: _Optional[str] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ..., instruction: _Optional[str] = ...) -> None: ...

class ProcessConversationResponse(_message.Message):
    __slots__ = ("replies", "usage", "handler_time")
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    HANDLER_TIME_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[_example_pb2.Turn]
    usage: Usage
    handler_time: _duration_pb2.Duration
    def __init__(self, replies: _Optional[_Iterable[_Union[_example_pb2.Turn, _Mapping]]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., handler_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
