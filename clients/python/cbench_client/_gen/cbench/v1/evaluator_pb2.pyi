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

class ScoreDirection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCORE_DIRECTION_UNSPECIFIED: _ClassVar[ScoreDirection]
    SCORE_DIRECTION_HIGHER_IS_BETTER: _ClassVar[ScoreDirection]
    SCORE_DIRECTION_LOWER_IS_BETTER: _ClassVar[ScoreDirection]
SCORE_DIRECTION_UNSPECIFIED: ScoreDirection
SCORE_DIRECTION_HIGHER_IS_BETTER: ScoreDirection
SCORE_DIRECTION_LOWER_IS_BETTER: ScoreDirection

class EvaluatorDescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EvaluatorDescribeResponse(_message.Message):
    __slots__ = ("evaluators", "sdk")
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    SDK_FIELD_NUMBER: _ClassVar[int]
    evaluators: _containers.RepeatedCompositeFieldContainer[EvaluatorInfo]
    sdk: str
    def __init__(self, evaluators: _Optional[_Iterable[_Union[EvaluatorInfo, _Mapping]]] = ..., sdk: _Optional[str] = ...) -> None: ...

class EvaluatorInfo(_message.Message):
    __slots__ = ("name", "description", "scores", "required_fields", "version", "max_concurrency", "location", "declared_options")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FIELDS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    DECLARED_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    scores: _containers.RepeatedCompositeFieldContainer[ScoreInfo]
    required_fields: _containers.RepeatedScalarFieldContainer[str]
    version: str
    max_concurrency: int
    location: str
    declared_options: _option_pb2.DeclaredOptions
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., scores: _Optional[_Iterable[_Union[ScoreInfo, _Mapping]]] = ..., required_fields: _Optional[_Iterable[str]] = ..., version: _Optional[str] = ..., max_concurrency: _Optional[int] = ..., location: _Optional[str] = ..., declared_options: _Optional[_Union[_option_pb2.DeclaredOptions, _Mapping]] = ...) -> None: ...

class ScoreInfo(_message.Message):
    __slots__ = ("name", "description", "higher_is_better", "worst", "direction")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    HIGHER_IS_BETTER_FIELD_NUMBER: _ClassVar[int]
    WORST_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    higher_is_better: bool
    worst: float
    direction: ScoreDirection
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., higher_is_better: bool = ..., worst: _Optional[float] = ..., direction: _Optional[_Union[ScoreDirection, str]] = ...) -> None: ...

class ScoreRequest(_message.Message):
    __slots__ = ("evaluator", "original", "processed", "options")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_FIELD_NUMBER: _ClassVar[int]
    PROCESSED_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    evaluator: str
    original: _example_pb2.Example
    processed: _example_pb2.Example
    options: _containers.MessageMap[str, _example_pb2.Value]
    def __init__(self, evaluator: _Optional[str] = ..., original: _Optional[_Union[_example_pb2.Example, _Mapping]] = ..., processed: _Optional[_Union[_example_pb2.Example, _Mapping]] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("scores", "explanation", "details")
    class ScoresEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    SCORES_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.ScalarMap[str, float]
    explanation: str
    details: _containers.MessageMap[str, _example_pb2.Value]
    def __init__(self, scores: _Optional[_Mapping[str, float]] = ..., explanation: _Optional[str] = ..., details: _Optional[_Mapping[str, _example_pb2.Value]] = ...) -> None: ...

class ScoreStreamRequest(_message.Message):
    __slots__ = ("calls", "cancel_call_ids")
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CANCEL_CALL_IDS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[ScoreCall]
    cancel_call_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, calls: _Optional[_Iterable[_Union[ScoreCall, _Mapping]]] = ..., cancel_call_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ScoreCall(_message.Message):
    __slots__ = ("call_id", "request", "timeout", "traceparent", "tracestate")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    request: ScoreRequest
    timeout: _duration_pb2.Duration
    traceparent: str
    tracestate: str
    def __init__(self, call_id: _Optional[str] = ..., request: _Optional[_Union[ScoreRequest, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ...) -> None: ...

class ScoreStreamResponse(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[ScoreOutcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[ScoreOutcome, _Mapping]]] = ...) -> None: ...

class ScoreOutcome(_message.Message):
    __slots__ = ("call_id", "response", "failure")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    response: ScoreResponse
    failure: _failure_pb2.Failure
    def __init__(self, call_id: _Optional[str] = ..., response: _Optional[_Union[ScoreResponse, _Mapping]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...
