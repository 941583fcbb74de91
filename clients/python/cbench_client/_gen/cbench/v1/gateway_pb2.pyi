import datetime

from cbench_client._gen.cbench.v1 import evaluator_pb2 as _evaluator_pb2
from cbench_client._gen.cbench.v1 import failure_pb2 as _failure_pb2
from cbench_client._gen.cbench.v1 import memory_pb2 as _memory_pb2
from cbench_client._gen.cbench.v1 import system_pb2 as _system_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AttachRequest(_message.Message):
    __slots__ = ("hello", "results", "drain")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    results: _containers.RepeatedCompositeFieldContainer[CallResult]
    drain: Drain
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., results: _Optional[_Iterable[_Union[CallResult, _Mapping]]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("welcome", "calls", "cancel_call_ids", "drain")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_CALL_IDS_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    calls: _containers.RepeatedCompositeFieldContainer[Call]
    cancel_call_ids: _containers.RepeatedScalarFieldContainer[str]
    drain: Drain
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., calls: _Optional[_Iterable[_Union[Call, _Mapping]]] = ..., cancel_call_ids: _Optional[_Iterable[str]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("systems", "evaluators", "sdk", "max_in_flight", "memory_systems")
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    SDK_FIELD_NUMBER: _ClassVar[int]
    MAX_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    systems: _containers.RepeatedCompositeFieldContainer[_system_pb2.SystemInfo]
    evaluators: _containers.RepeatedCompositeFieldContainer[_evaluator_pb2.EvaluatorInfo]
    sdk: str
    max_in_flight: int
    memory_systems: _containers.RepeatedCompositeFieldContainer[_system_pb2.SystemInfo]
    def __init__(self, systems: _Optional[_Iterable[_Union[_system_pb2.SystemInfo, _Mapping]]] = ..., evaluators: _Optional[_Iterable[_Union[_evaluator_pb2.EvaluatorInfo, _Mapping]]] = ..., sdk: _Optional[str] = ..., max_in_flight: _Optional[int] = ..., memory_systems: _Optional[_Iterable[_Union[_system_pb2.SystemInfo, _Mapping]]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("attachment_id",)
    ATTACHMENT_ID_FIELD_NUMBER: _ClassVar[int]
    attachment_id: str
    def __init__(self, attachment_id: _Optional[str] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ("call_id", "timeout", "process", "converse", "score", "reset", "ingest", "query", "traceparent", "tracestate")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    CONVERSE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    INGEST_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    timeout: _duration_pb2.Duration
    process: _system_pb2.ProcessRequest
    converse: _system_pb2.ProcessConversationRequest
    score: _evaluator_pb2.ScoreRequest
    reset: _memory_pb2.ResetRequest
    ingest: _memory_pb2.IngestRequest
    query: _memory_pb2.QueryRequest
    traceparent: str
    tracestate: str
    def __init__(self, call_id: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., process: _Optional[_Union[_system_pb2.ProcessRequest, _Mapping]] = ..., converse: _Optional[_Union[_system_pb2.ProcessConversationRequest, _Mapping]] = ..., score: _Optional[_Union[_evaluator_pb2.ScoreRequest, _Mapping]] = ..., reset: _Optional[_Union[_memory_pb2.ResetRequest, _Mapping]] = ..., ingest: _Optional[_Union[_memory_pb2.IngestRequest, _Mapping]] = ..., query: _Optional[_Union[_memory_pb2.QueryRequest, _Mapping]] = ..., traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ...) -> None: ...

class CallResult(_message.Message):
    __slots__ = ("call_id", "process", "converse", "score", "failure", "reset", "ingest", "query")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    CONVERSE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    RESET_FIELD_NUMBER: _ClassVar[int]
    INGEST_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    process: _system_pb2.ProcessResponse
    converse: _system_pb2.ProcessConversationResponse
    score: _evaluator_pb2.ScoreResponse
    failure: _failure_pb2.Failure
    reset: _memory_pb2.ResetResponse
    ingest: _memory_pb2.IngestResponse
    query: _memory_pb2.QueryResponse
    def __init__(self, call_id: _Optional[str] = ..., process: _Optional[_Union[_system_pb2.ProcessResponse, _Mapping]] = ..., converse: _Optional[_Union[_system_pb2.ProcessConversationResponse, _Mapping]] = ..., score: _Optional[_Union[_evaluator_pb2.ScoreResponse, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., reset: _Optional[_Union[_memory_pb2.ResetResponse, _Mapping]] = ..., ingest: _Optional[_Union[_memory_pb2.IngestResponse, _Mapping]] = ..., query: _Optional[_Union[_memory_pb2.QueryResponse, _Mapping]] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...
