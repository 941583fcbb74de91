import datetime

from cbench_client._gen.cbench.v1 import comparison_pb2 as _comparison_pb2
from cbench_client._gen.cbench.v1 import evaluator_pb2 as _evaluator_pb2
from cbench_client._gen.cbench.v1 import example_pb2 as _example_pb2
from cbench_client._gen.cbench.v1 import failure_pb2 as _failure_pb2
from cbench_client._gen.cbench.v1 import system_pb2 as _system_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_KIND_UNSPECIFIED: _ClassVar[RunKind]
    RUN_KIND_PROCESS: _ClassVar[RunKind]
    RUN_KIND_MEMORY: _ClassVar[RunKind]

class SystemRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SYSTEM_ROLE_UNSPECIFIED: _ClassVar[SystemRole]
    SYSTEM_ROLE_CONTROL: _ClassVar[SystemRole]
    SYSTEM_ROLE_ANCHOR: _ClassVar[SystemRole]
    SYSTEM_ROLE_DIRECT: _ClassVar[SystemRole]

class RunState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_STATE_UNSPECIFIED: _ClassVar[RunState]
    RUN_STATE_QUEUED: _ClassVar[RunState]
    RUN_STATE_RUNNING: _ClassVar[RunState]
    RUN_STATE_SUCCEEDED: _ClassVar[RunState]
    RUN_STATE_FAILED: _ClassVar[RunState]
    RUN_STATE_CANCELLED: _ClassVar[RunState]
    RUN_STATE_WAITING: _ClassVar[RunState]
RUN_KIND_UNSPECIFIED: RunKind
RUN_KIND_PROCESS: RunKind
RUN_KIND_MEMORY: RunKind
SYSTEM_ROLE_UNSPECIFIED: SystemRole
SYSTEM_ROLE_CONTROL: SystemRole
SYSTEM_ROLE_ANCHOR: SystemRole
SYSTEM_ROLE_DIRECT: SystemRole
RUN_STATE_UNSPECIFIED: RunState
RUN_STATE_QUEUED: RunState
RUN_STATE_RUNNING: RunState
RUN_STATE_SUCCEEDED: RunState
RUN_STATE_FAILED: RunState
RUN_STATE_CANCELLED: RunState
RUN_STATE_WAITING: RunState

class RunSpec(_message.Message):
    __slots__ = ("systems", "datasets", "evaluators", "metrics", "row_timeout", "max_concurrency", "expose_reference_fields", "labels", "kind", "repeats", "max_failures", "reader", "score_field", "threshold", "tokenizer", "text_fields", "seed", "reuse", "wait_timeout", "replace_evaluators", "reference_fields", "query_budget", "question_types", "prompt", "budget_usd", "matched_controls", "anchors", "group_by", "errata_upload", "labels_upload", "allow_unqualified_judges", "timed_rows", "asked_again", "options")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    DATASETS_FIELD_NUMBER: _ClassVar[int]
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    ROW_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    EXPOSE_REFERENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REPEATS_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    READER_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELDS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    REUSE_FIELD_NUMBER: _ClassVar[int]
    WAIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    REPLACE_EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    QUERY_BUDGET_FIELD_NUMBER: _ClassVar[int]
    QUESTION_TYPES_FIELD_NUMBER: _ClassVar[int]
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    BUDGET_USD_FIELD_NUMBER: _ClassVar[int]
    MATCHED_CONTROLS_FIELD_NUMBER: _ClassVar[int]
    ANCHORS_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    ERRATA_UPLOAD_FIELD_NUMBER: _ClassVar[int]
    LABELS_UPLOAD_FIELD_NUMBER: _ClassVar[int]
    ALLOW_UNQUALIFIED_JUDGES_FIELD_NUMBER: _ClassVar[int]
    TIMED_ROWS_FIELD_NUMBER: _ClassVar[int]
    ASKED_AGAIN_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    systems: _containers.RepeatedCompositeFieldContainer[SystemRef]
    datasets: _containers.RepeatedCompositeFieldContainer[DatasetRef]
    evaluators: _containers.RepeatedCompositeFieldContainer[EvaluatorRef]
    metrics: _containers.RepeatedCompositeFieldContainer[MetricRef]
    row_timeout: _duration_pb2.Duration
    max_concurrency: int
    expose_reference_fields: bool
    labels: _containers.ScalarMap[str, str]
    kind: RunKind
    repeats: int
    max_failures: str
    reader: ModelRef
    score_field: str
    threshold: float
    tokenizer: str
    text_fields: _containers.RepeatedScalarFieldContainer[str]
    seed: int
    reuse: bool
    wait_timeout: _duration_pb2.Duration
    replace_evaluators: bool
    reference_fields: _containers.RepeatedScalarFieldContainer[str]
    query_budget: int
    question_types: _containers.RepeatedScalarFieldContainer[str]
    prompt: Prompt
    budget_usd: float
    matched_controls: bool
    anchors: bool
    group_by: _containers.RepeatedScalarFieldContainer[str]
    errata_upload: str
    labels_upload: str
    allow_unqualified_judges: bool
    timed_rows: int
    asked_again: int
    options: _containers.MessageMap[str, _example_pb2.Value]
    def __init__(self, systems: _Optional[_Iterable[_Union[SystemRef, _Mapping]]] = ..., datasets: _Optional[_Iterable[_Union[DatasetRef, _Mapping]]] = ..., evaluators: _Optional[_Iterable[_Union[EvaluatorRef, _Mapping]]] = ..., metrics: _Optional[_Iterable[_Union[MetricRef, _Mapping]]] = ..., row_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_concurrency: _Optional[int] = ..., expose_reference_fields: bool = ..., labels: _Optional[_Mapping[str, str]] = ..., kind: _Optional[_Union[RunKind, str]] = ..., repeats: _Optional[int] = ..., max_failures: _Optional[str] = ..., reader: _Optional[_Union[ModelRef, _Mapping]] = ..., score_field: _Optional[str] = ..., threshold: _Optional[float] = ..., tokenizer: _Optional[str] = ..., text_fields: _Optional[_Iterable[str]] = ..., seed: _Optional[int] = ..., reuse: bool = ..., wait_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., replace_evaluators: bool = ..., reference_fields: _Optional[_Iterable[str]] = ..., query_budget: _Optional[int] = ..., question_types: _Optional[_Iterable[str]] = ..., prompt: _Optional[_Union[Prompt, _Mapping]] = ..., budget_usd: _Optional[float] = ..., matched_controls: bool = ..., anchors: bool = ..., group_by: _Optional[_Iterable[str]] = ..., errata_upload: _Optional[str] = ..., labels_upload: _Optional[str] = ..., allow_unqualified_judges: bool = ..., timed_rows: _Optional[int] = ..., asked_again: _Optional[int] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ...) -> None: ...

class Prompt(_message.Message):
    __slots__ = ("template", "system_prompt", "few_shot", "max_tokens", "plain")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_FIELD_NUMBER: _ClassVar[int]
    FEW_SHOT_FIELD_NUMBER: _ClassVar[int]
    MAX_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PLAIN_FIELD_NUMBER: _ClassVar[int]
    template: str
    system_prompt: str
    few_shot: int
    max_tokens: int
    plain: bool
    def __init__(self, template: _Optional[str] = ..., system_prompt: _Optional[str] = ..., few_shot: _Optional[int] = ..., max_tokens: _Optional[int] = ..., plain: bool = ...) -> None: ...

class SystemRef(_message.Message):
    __slots__ = ("name", "target", "attached", "builtin", "proxy", "predictions", "options", "served_name", "tls", "credential", "role", "swept_option", "log", "revision", "replicas")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    BUILTIN_FIELD_NUMBER: _ClassVar[int]
    PROXY_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SERVED_NAME_FIELD_NUMBER: _ClassVar[int]
    TLS_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    SWEPT_OPTION_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    name: str
    target: str
    attached: str
    builtin: str
    proxy: ModelRef
    predictions: str
    options: _containers.MessageMap[str, _example_pb2.Value]
    served_name: str
    tls: TlsOptions
    credential: str
    role: SystemRole
    swept_option: str
    log: str
    revision: str
    replicas: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., target: _Optional[str] = ..., attached: _Optional[str] = ..., builtin: _Optional[str] = ..., proxy: _Optional[_Union[ModelRef, _Mapping]] = ..., predictions: _Optional[str] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ..., served_name: _Optional[str] = ..., tls: _Optional[_Union[TlsOptions, _Mapping]] = ..., credential: _Optional[str] = ..., role: _Optional[_Union[SystemRole, str]] = ..., swept_option: _Optional[str] = ..., log: _Optional[str] = ..., revision: _Optional[str] = ..., replicas: _Optional[_Iterable[str]] = ...) -> None: ...

class TlsOptions(_message.Message):
    __slots__ = ("ca_pem", "server_name")
    CA_PEM_FIELD_NUMBER: _ClassVar[int]
    SERVER_NAME_FIELD_NUMBER: _ClassVar[int]
    ca_pem: str
    server_name: str
    def __init__(self, ca_pem: _Optional[str] = ..., server_name: _Optional[str] = ...) -> None: ...

class ModelRef(_message.Message):
    __slots__ = ("base_url", "model", "credential", "options", "system_prompt", "price", "max_concurrency", "timeout", "context_window")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_PROMPT_FIELD_NUMBER: _ClassVar[int]
    PRICE_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_WINDOW_FIELD_NUMBER: _ClassVar[int]
    base_url: str
    model: str
    credential: str
    options: _containers.MessageMap[str, _example_pb2.Value]
    system_prompt: str
    price: Price
    max_concurrency: int
    timeout: _duration_pb2.Duration
    context_window: int
    def __init__(self, base_url: _Optional[str] = ..., model: _Optional[str] = ..., credential: _Optional[str] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ..., system_prompt: _Optional[str] = ..., price: _Optional[_Union[Price, _Mapping]] = ..., max_concurrency: _Optional[int] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., context_window: _Optional[int] = ...) -> None: ...

class Price(_message.Message):
    __slots__ = ("input_usd", "output_usd", "cached_input_usd")
    INPUT_USD_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_USD_FIELD_NUMBER: _ClassVar[int]
    CACHED_INPUT_USD_FIELD_NUMBER: _ClassVar[int]
    input_usd: float
    output_usd: float
    cached_input_usd: float
    def __init__(self, input_usd: _Optional[float] = ..., output_usd: _Optional[float] = ..., cached_input_usd: _Optional[float] = ...) -> None: ...

class EvaluatorRef(_message.Message):
    __slots__ = ("name", "target", "attached", "options", "label")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    target: str
    attached: str
    options: _containers.MessageMap[str, _example_pb2.Value]
    label: str
    def __init__(self, name: _Optional[str] = ..., target: _Optional[str] = ..., attached: _Optional[str] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ..., label: _Optional[str] = ...) -> None: ...

class MetricRef(_message.Message):
    __slots__ = ("name", "options")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    options: _containers.MessageMap[str, _example_pb2.Value]
    def __init__(self, name: _Optional[str] = ..., options: _Optional[_Mapping[str, _example_pb2.Value]] = ...) -> None: ...

class DatasetRef(_message.Message):
    __slots__ = ("name", "config", "max_examples", "upload", "split", "shuffle", "where", "skip_bad_lines", "revision", "mapping", "as_transcript")
    class WhereEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class MappingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    MAX_EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    SHUFFLE_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    SKIP_BAD_LINES_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    MAPPING_FIELD_NUMBER: _ClassVar[int]
    AS_TRANSCRIPT_FIELD_NUMBER: _ClassVar[int]
    name: str
    config: str
    max_examples: int
    upload: str
    split: str
    shuffle: bool
    where: _containers.ScalarMap[str, str]
    skip_bad_lines: bool
    revision: str
    mapping: _containers.ScalarMap[str, str]
    as_transcript: bool
    def __init__(self, name: _Optional[str] = ..., config: _Optional[str] = ..., max_examples: _Optional[int] = ..., upload: _Optional[str] = ..., split: _Optional[str] = ..., shuffle: bool = ..., where: _Optional[_Mapping[str, str]] = ..., skip_bad_lines: bool = ..., revision: _Optional[str] = ..., mapping: _Optional[_Mapping[str, str]] = ..., as_transcript: bool = ...) -> None: ...

class EvaluateRequest(_message.Message):
    __slots__ = ("spec", "request_id", "omit_rows")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    OMIT_ROWS_FIELD_NUMBER: _ClassVar[int]
    spec: RunSpec
    request_id: str
    omit_rows: bool
    def __init__(self, spec: _Optional[_Union[RunSpec, _Mapping]] = ..., request_id: _Optional[str] = ..., omit_rows: bool = ...) -> None: ...

class EvaluateResponse(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[RunEvent]
    def __init__(self, events: _Optional[_Iterable[_Union[RunEvent, _Mapping]]] = ...) -> None: ...

class WatchRunRequest(_message.Message):
    __slots__ = ("run_id", "after_sequence", "omit_rows", "include_processed")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OMIT_ROWS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PROCESSED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    after_sequence: int
    omit_rows: bool
    include_processed: bool
    def __init__(self, run_id: _Optional[str] = ..., after_sequence: _Optional[int] = ..., omit_rows: bool = ..., include_processed: bool = ...) -> None: ...

class WatchRunResponse(_message.Message):
    __slots__ = ("events",)
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[RunEvent]
    def __init__(self, events: _Optional[_Iterable[_Union[RunEvent, _Mapping]]] = ...) -> None: ...

class RunEvent(_message.Message):
    __slots__ = ("sequence", "create_time", "accepted", "row", "progress", "finished", "state_change")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    STATE_CHANGE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    create_time: _timestamp_pb2.Timestamp
    accepted: Run
    row: EvalRow
    progress: Progress
    finished: Run
    state_change: StateChange
    def __init__(self, sequence: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., accepted: _Optional[_Union[Run, _Mapping]] = ..., row: _Optional[_Union[EvalRow, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., finished: _Optional[_Union[Run, _Mapping]] = ..., state_change: _Optional[_Union[StateChange, _Mapping]] = ...) -> None: ...

class StateChange(_message.Message):
    __slots__ = ("state", "reason")
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    state: RunState
    reason: str
    def __init__(self, state: _Optional[_Union[RunState, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("completed_rows", "failed_rows", "total_rows", "systems")
    COMPLETED_ROWS_FIELD_NUMBER: _ClassVar[int]
    FAILED_ROWS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ROWS_FIELD_NUMBER: _ClassVar[int]
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    completed_rows: int
    failed_rows: int
    total_rows: int
    systems: _containers.RepeatedCompositeFieldContainer[SystemProgress]
    def __init__(self, completed_rows: _Optional[int] = ..., failed_rows: _Optional[int] = ..., total_rows: _Optional[int] = ..., systems: _Optional[_Iterable[_Union[SystemProgress, _Mapping]]] = ...) -> None: ...

class SystemProgress(_message.Message):
    __slots__ = ("system", "completed_rows", "failed_rows", "reused_rows", "total_rows")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_ROWS_FIELD_NUMBER: _ClassVar[int]
    FAILED_ROWS_FIELD_NUMBER: _ClassVar[int]
    REUSED_ROWS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_ROWS_FIELD_NUMBER: _ClassVar[int]
    system: str
    completed_rows: int
    failed_rows: int
    reused_rows: int
    total_rows: int
    def __init__(self, system: _Optional[str] = ..., completed_rows: _Optional[int] = ..., failed_rows: _Optional[int] = ..., reused_rows: _Optional[int] = ..., total_rows: _Optional[int] = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ("run_id", "spec", "state", "create_time", "end_time", "progress", "summaries", "failure", "waiting_reason", "parent_run_id", "config", "last_sequence", "notes", "created_by")
    class ConfigEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    SUMMARIES_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    WAITING_REASON_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    spec: RunSpec
    state: RunState
    create_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    progress: Progress
    summaries: _containers.RepeatedCompositeFieldContainer[SystemSummary]
    failure: _failure_pb2.Failure
    waiting_reason: str
    parent_run_id: str
    config: _containers.MessageMap[str, _example_pb2.Value]
    last_sequence: int
    notes: _containers.RepeatedCompositeFieldContainer[RunNote]
    created_by: str
    def __init__(self, run_id: _Optional[str] = ..., spec: _Optional[_Union[RunSpec, _Mapping]] = ..., state: _Optional[_Union[RunState, str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., summaries: _Optional[_Iterable[_Union[SystemSummary, _Mapping]]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., waiting_reason: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., config: _Optional[_Mapping[str, _example_pb2.Value]] = ..., last_sequence: _Optional[int] = ..., notes: _Optional[_Iterable[_Union[RunNote, _Mapping]]] = ..., created_by: _Optional[str] = ...) -> None: ...

class RunNote(_message.Message):
    __slots__ = ("code", "text", "system", "dataset")
    CODE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    code: str
    text: str
    system: str
    dataset: str
    def __init__(self, code: _Optional[str] = ..., text: _Optional[str] = ..., system: _Optional[str] = ..., dataset: _Optional[str] = ...) -> None: ...

class SystemSummary(_message.Message):
    __slots__ = ("system", "metrics", "elapsed", "undefined_metrics")
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_FIELD_NUMBER: _ClassVar[int]
    UNDEFINED_METRICS_FIELD_NUMBER: _ClassVar[int]
    system: str
    metrics: _containers.ScalarMap[str, float]
    elapsed: _duration_pb2.Duration
    undefined_metrics: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, system: _Optional[str] = ..., metrics: _Optional[_Mapping[str, float]] = ..., elapsed: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., undefined_metrics: _Optional[_Iterable[str]] = ...) -> None: ...

class EvalRow(_message.Message):
    __slots__ = ("system", "example_id", "dataset", "index", "scores", "input_tokens", "output_tokens", "latency", "usage", "attempts", "failure", "metadata", "repeat", "primary_score", "processed", "context_tokens_in", "context_tokens_out", "queue_time", "scoring_time", "reused", "evaluator_notes", "group", "original", "reader_time", "reader_usage", "ordinal", "ingest_time", "stored_bytes", "context_only", "not_applicable", "handler_time", "calls_in_flight", "alone", "finish_reason", "marks", "cost_usd", "groups", "traceparent", "replica")
    class ScoresEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    class ProcessedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    class CostUsdEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class GroupsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_ID_FIELD_NUMBER: _ClassVar[int]
    DATASET_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    REPEAT_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_SCORE_FIELD_NUMBER: _ClassVar[int]
    PROCESSED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_IN_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_TOKENS_OUT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_TIME_FIELD_NUMBER: _ClassVar[int]
    SCORING_TIME_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    EVALUATOR_NOTES_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_FIELD_NUMBER: _ClassVar[int]
    READER_TIME_FIELD_NUMBER: _ClassVar[int]
    READER_USAGE_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    INGEST_TIME_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_ONLY_FIELD_NUMBER: _ClassVar[int]
    NOT_APPLICABLE_FIELD_NUMBER: _ClassVar[int]
    HANDLER_TIME_FIELD_NUMBER: _ClassVar[int]
    CALLS_IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    ALONE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    system: str
    example_id: _example_pb2.ExampleId
    dataset: str
    index: int
    scores: _containers.ScalarMap[str, float]
    input_tokens: int
    output_tokens: int
    latency: _duration_pb2.Duration
    usage: _system_pb2.Usage
    attempts: int
    failure: _failure_pb2.Failure
    metadata: _containers.MessageMap[str, _example_pb2.Value]
    repeat: int
    primary_score: str
    processed: _containers.MessageMap[str, _example_pb2.Value]
    context_tokens_in: int
    context_tokens_out: int
    queue_time: _duration_pb2.Duration
    scoring_time: _duration_pb2.Duration
    reused: bool
    evaluator_notes: _containers.RepeatedCompositeFieldContainer[EvaluatorNote]
    group: str
    original: _example_pb2.Example
    reader_time: _duration_pb2.Duration
    reader_usage: _system_pb2.Usage
    ordinal: int
    ingest_time: _duration_pb2.Duration
    stored_bytes: int
    context_only: bool
    not_applicable: _containers.RepeatedScalarFieldContainer[str]
    handler_time: _duration_pb2.Duration
    calls_in_flight: int
    alone: bool
    finish_reason: str
    marks: _containers.RepeatedScalarFieldContainer[str]
    cost_usd: _containers.ScalarMap[str, float]
    groups: _containers.ScalarMap[str, str]
    traceparent: str
    replica: str
    def __init__(self, system: _Optional[str] = ..., example_id: _Optional[_Union[_example_pb2.ExampleId, _Mapping]] = ..., dataset: _Optional[str] = ..., index: _Optional[int] = ..., scores: _Optional[_Mapping[str, float]] = ..., input_tokens: _Optional[int] = ..., output_tokens: _Optional[int] = ..., latency: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., usage: _Optional[_Union[_system_pb2.Usage, _Mapping]] = ..., attempts: _Optional[int] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ..., metadata: _Optional[_Mapping[str, _example_pb2.Value]] = ..., repeat: _Optional[int] = ..., primary_score: _Optional[str] = ..., processed: _Optional[_Mapping[str, _example_pb2.Value]] = ..., context_tokens_in: _Optional[int] = ..., context_tokens_out: _Optional[int] = ..., queue_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., scoring_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reused: bool = ..., evaluator_notes: _Optional[_Iterable[_Union[EvaluatorNote, _Mapping]]] = ..., group: _Optional[str] = ..., original: _Optional[_Union[_example_pb2.Example, _Mapping]] = ..., reader_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., reader_usage: _Optional[_Union[_system_pb2.Usage, _Mapping]] = ..., ordinal: _Optional[int] = ..., ingest_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., stored_bytes: _Optional[int] = ..., context_only: bool = ..., not_applicable: _Optional[_Iterable[str]] = ..., handler_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., calls_in_flight: _Optional[int] = ..., alone: bool = ..., finish_reason: _Optional[str] = ..., marks: _Optional[_Iterable[str]] = ..., cost_usd: _Optional[_Mapping[str, float]] = ..., groups: _Optional[_Mapping[str, str]] = ..., traceparent: _Optional[str] = ..., replica: _Optional[str] = ...) -> None: ...

class EvaluatorNote(_message.Message):
    __slots__ = ("evaluator", "details", "failure")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _example_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_example_pb2.Value, _Mapping]] = ...) -> None: ...
    EVALUATOR_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    evaluator: str
    details: _containers.MessageMap[str, _example_pb2.Value]
    failure: _failure_pb2.Failure
    def __init__(self, evaluator: _Optional[str] = ..., details: _Optional[_Mapping[str, _example_pb2.Value]] = ..., failure: _Optional[_Union[_failure_pb2.Failure, _Mapping]] = ...) -> None: ...

class GetRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class GetRunResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states", "labels", "mine")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    MINE_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[RunState]
    labels: _containers.ScalarMap[str, str]
    mine: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[_Union[RunState, str]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., mine: bool = ...) -> None: ...

class ListRunsResponse(_message.Message):
    __slots__ = ("runs", "next_page_token")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[Run]
    next_page_token: str
    def __init__(self, runs: _Optional[_Iterable[_Union[Run, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListRowsRequest(_message.Message):
    __slots__ = ("run_id", "page_size", "page_token", "failed_only", "include_processed", "include_original", "system")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FAILED_ONLY_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PROCESSED_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ORIGINAL_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    page_size: int
    page_token: str
    failed_only: bool
    include_processed: bool
    include_original: bool
    system: str
    def __init__(self, run_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., failed_only: bool = ..., include_processed: bool = ..., include_original: bool = ..., system: _Optional[str] = ...) -> None: ...

class ListRowsResponse(_message.Message):
    __slots__ = ("rows", "next_page_token")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[EvalRow]
    next_page_token: str
    def __init__(self, rows: _Optional[_Iterable[_Union[EvalRow, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CancelRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class CancelRunResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class ResumeRunRequest(_message.Message):
    __slots__ = ("run_id", "budget_usd", "waiting_reason")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    BUDGET_USD_FIELD_NUMBER: _ClassVar[int]
    WAITING_REASON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    budget_usd: float
    waiting_reason: str
    def __init__(self, run_id: _Optional[str] = ..., budget_usd: _Optional[float] = ..., waiting_reason: _Optional[str] = ...) -> None: ...

class ResumeRunResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class ExplainWaitRequest(_message.Message):
    __slots__ = ("run_id", "reason")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    reason: str
    def __init__(self, run_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ExplainWaitResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class DeleteRunRequest(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class DeleteRunResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PinRunRequest(_message.Message):
    __slots__ = ("run_id", "unpin")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    UNPIN_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    unpin: bool
    def __init__(self, run_id: _Optional[str] = ..., unpin: bool = ...) -> None: ...

class PinRunResponse(_message.Message):
    __slots__ = ("run_id", "pinned")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    pinned: bool
    def __init__(self, run_id: _Optional[str] = ..., pinned: bool = ...) -> None: ...

class PruneRunsRequest(_message.Message):
    __slots__ = ("older_than", "keep", "max_bytes", "dry_run")
    OLDER_THAN_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    older_than: _duration_pb2.Duration
    keep: int
    max_bytes: int
    dry_run: bool
    def __init__(self, older_than: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., keep: _Optional[int] = ..., max_bytes: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class PruneRunsResponse(_message.Message):
    __slots__ = ("runs", "removed_files")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FILES_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[PrunedRun]
    removed_files: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, runs: _Optional[_Iterable[_Union[PrunedRun, _Mapping]]] = ..., removed_files: _Optional[_Iterable[str]] = ...) -> None: ...

class PrunedRun(_message.Message):
    __slots__ = ("run_id", "end_time", "size_bytes", "why")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    end_time: _timestamp_pb2.Timestamp
    size_bytes: int
    why: str
    def __init__(self, run_id: _Optional[str] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., size_bytes: _Optional[int] = ..., why: _Optional[str] = ...) -> None: ...

class RescoreRequest(_message.Message):
    __slots__ = ("run_id", "evaluators", "references_upload", "labels", "request_id", "allow_unqualified_judges", "errata_upload", "labels_upload")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    REFERENCES_UPLOAD_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOW_UNQUALIFIED_JUDGES_FIELD_NUMBER: _ClassVar[int]
    ERRATA_UPLOAD_FIELD_NUMBER: _ClassVar[int]
    LABELS_UPLOAD_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    evaluators: _containers.RepeatedCompositeFieldContainer[EvaluatorRef]
    references_upload: str
    labels: _containers.ScalarMap[str, str]
    request_id: str
    allow_unqualified_judges: bool
    errata_upload: str
    labels_upload: str
    def __init__(self, run_id: _Optional[str] = ..., evaluators: _Optional[_Iterable[_Union[EvaluatorRef, _Mapping]]] = ..., references_upload: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., request_id: _Optional[str] = ..., allow_unqualified_judges: bool = ..., errata_upload: _Optional[str] = ..., labels_upload: _Optional[str] = ...) -> None: ...

class RescoreResponse(_message.Message):
    __slots__ = ("run",)
    RUN_FIELD_NUMBER: _ClassVar[int]
    run: Run
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class CompareRequest(_message.Message):
    __slots__ = ("run_id", "other_run_id", "systems", "baseline", "score_field", "group_by", "effect")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OTHER_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    other_run_id: str
    systems: _containers.RepeatedScalarFieldContainer[str]
    baseline: str
    score_field: str
    group_by: _containers.RepeatedScalarFieldContainer[str]
    effect: float
    def __init__(self, run_id: _Optional[str] = ..., other_run_id: _Optional[str] = ..., systems: _Optional[_Iterable[str]] = ..., baseline: _Optional[str] = ..., score_field: _Optional[str] = ..., group_by: _Optional[_Iterable[str]] = ..., effect: _Optional[float] = ...) -> None: ...

class CompareResponse(_message.Message):
    __slots__ = ("comparison",)
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    comparison: _comparison_pb2.Comparison
    def __init__(self, comparison: _Optional[_Union[_comparison_pb2.Comparison, _Mapping]] = ...) -> None: ...

class GateRequest(_message.Message):
    __slots__ = ("run_id", "policies", "system", "baseline_run_id", "baseline_system")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    BASELINE_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    BASELINE_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    policies: _containers.RepeatedScalarFieldContainer[str]
    system: str
    baseline_run_id: str
    baseline_system: str
    def __init__(self, run_id: _Optional[str] = ..., policies: _Optional[_Iterable[str]] = ..., system: _Optional[str] = ..., baseline_run_id: _Optional[str] = ..., baseline_system: _Optional[str] = ...) -> None: ...

class GateResponse(_message.Message):
    __slots__ = ("run_id", "system", "passed", "checks")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    system: str
    passed: bool
    checks: _containers.RepeatedCompositeFieldContainer[_comparison_pb2.PolicyCheck]
    def __init__(self, run_id: _Optional[str] = ..., system: _Optional[str] = ..., passed: bool = ..., checks: _Optional[_Iterable[_Union[_comparison_pb2.PolicyCheck, _Mapping]]] = ...) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ("run_id", "compare_run_ids", "group_by")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    COMPARE_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    compare_run_ids: _containers.RepeatedScalarFieldContainer[str]
    group_by: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, run_id: _Optional[str] = ..., compare_run_ids: _Optional[_Iterable[str]] = ..., group_by: _Optional[_Iterable[str]] = ...) -> None: ...

class ReportResponse(_message.Message):
    __slots__ = ("content", "run_id")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    run_id: str
    def __init__(self, content: _Optional[bytes] = ..., run_id: _Optional[str] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("run_id", "format", "group_by", "with_texts", "system")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    WITH_TEXTS_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    format: str
    group_by: _containers.RepeatedScalarFieldContainer[str]
    with_texts: bool
    system: str
    def __init__(self, run_id: _Optional[str] = ..., format: _Optional[str] = ..., group_by: _Optional[_Iterable[str]] = ..., with_texts: bool = ..., system: _Optional[str] = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("content", "run_id")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    run_id: str
    def __init__(self, content: _Optional[bytes] = ..., run_id: _Optional[str] = ...) -> None: ...

class ImportRequest(_message.Message):
    __slots__ = ("content", "new_id")
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    NEW_ID_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    new_id: bool
    def __init__(self, content: _Optional[bytes] = ..., new_id: bool = ...) -> None: ...

class ImportResponse(_message.Message):
    __slots__ = ("run", "already_stored")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ALREADY_STORED_FIELD_NUMBER: _ClassVar[int]
    run: Run
    already_stored: bool
    def __init__(self, run: _Optional[_Union[Run, _Mapping]] = ..., already_stored: bool = ...) -> None: ...

class UploadExamplesRequest(_message.Message):
    __slots__ = ("examples",)
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    examples: _containers.RepeatedCompositeFieldContainer[_example_pb2.Example]
    def __init__(self, examples: _Optional[_Iterable[_Union[_example_pb2.Example, _Mapping]]] = ...) -> None: ...

class UploadExamplesResponse(_message.Message):
    __slots__ = ("digest", "example_count")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    digest: str
    example_count: int
    def __init__(self, digest: _Optional[str] = ..., example_count: _Optional[int] = ...) -> None: ...

class ListComponentsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListComponentsResponse(_message.Message):
    __slots__ = ("datasets", "evaluators", "metrics", "systems", "memory_systems", "server_version")
    DATASETS_FIELD_NUMBER: _ClassVar[int]
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    datasets: _containers.RepeatedCompositeFieldContainer[DatasetInfo]
    evaluators: _containers.RepeatedCompositeFieldContainer[_evaluator_pb2.EvaluatorInfo]
    metrics: _containers.RepeatedCompositeFieldContainer[MetricInfo]
    systems: _containers.RepeatedCompositeFieldContainer[_system_pb2.SystemInfo]
    memory_systems: _containers.RepeatedCompositeFieldContainer[_system_pb2.SystemInfo]
    server_version: str
    def __init__(self, datasets: _Optional[_Iterable[_Union[DatasetInfo, _Mapping]]] = ..., evaluators: _Optional[_Iterable[_Union[_evaluator_pb2.EvaluatorInfo, _Mapping]]] = ..., metrics: _Optional[_Iterable[_Union[MetricInfo, _Mapping]]] = ..., systems: _Optional[_Iterable[_Union[_system_pb2.SystemInfo, _Mapping]]] = ..., memory_systems: _Optional[_Iterable[_Union[_system_pb2.SystemInfo, _Mapping]]] = ..., server_version: _Optional[str] = ...) -> None: ...

class DatasetInfo(_message.Message):
    __slots__ = ("name", "description", "embedded", "evaluators", "reference_fields", "family", "configs", "size", "available", "primary_score", "official_metric", "licence", "source", "citation", "protocols", "split_here")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDED_FIELD_NUMBER: _ClassVar[int]
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELDS_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_SCORE_FIELD_NUMBER: _ClassVar[int]
    OFFICIAL_METRIC_FIELD_NUMBER: _ClassVar[int]
    LICENCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOLS_FIELD_NUMBER: _ClassVar[int]
    SPLIT_HERE_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    embedded: bool
    evaluators: _containers.RepeatedScalarFieldContainer[str]
    reference_fields: _containers.RepeatedScalarFieldContainer[str]
    family: str
    configs: _containers.RepeatedScalarFieldContainer[str]
    size: int
    available: bool
    primary_score: str
    official_metric: bool
    licence: str
    source: str
    citation: str
    protocols: _containers.RepeatedCompositeFieldContainer[DatasetProtocol]
    split_here: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., embedded: bool = ..., evaluators: _Optional[_Iterable[str]] = ..., reference_fields: _Optional[_Iterable[str]] = ..., family: _Optional[str] = ..., configs: _Optional[_Iterable[str]] = ..., size: _Optional[int] = ..., available: bool = ..., primary_score: _Optional[str] = ..., official_metric: bool = ..., licence: _Optional[str] = ..., source: _Optional[str] = ..., citation: _Optional[str] = ..., protocols: _Optional[_Iterable[_Union[DatasetProtocol, _Mapping]]] = ..., split_here: _Optional[str] = ...) -> None: ...

class DatasetProtocol(_message.Message):
    __slots__ = ("configs", "follows", "source", "revision", "split", "shown", "withheld", "extraction", "evaluators", "primary_score", "worst", "groups", "aggregate", "axes")
    class AxesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: ProtocolAxis
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[ProtocolAxis, _Mapping]] = ...) -> None: ...
    CONFIGS_FIELD_NUMBER: _ClassVar[int]
    FOLLOWS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    SPLIT_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    EXTRACTION_FIELD_NUMBER: _ClassVar[int]
    EVALUATORS_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_SCORE_FIELD_NUMBER: _ClassVar[int]
    WORST_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    AGGREGATE_FIELD_NUMBER: _ClassVar[int]
    AXES_FIELD_NUMBER: _ClassVar[int]
    configs: _containers.RepeatedScalarFieldContainer[str]
    follows: str
    source: str
    revision: str
    split: str
    shown: _containers.RepeatedScalarFieldContainer[str]
    withheld: _containers.RepeatedScalarFieldContainer[str]
    extraction: str
    evaluators: _containers.RepeatedCompositeFieldContainer[EvaluatorRef]
    primary_score: str
    worst: float
    groups: _containers.RepeatedScalarFieldContainer[str]
    aggregate: str
    axes: _containers.MessageMap[str, ProtocolAxis]
    def __init__(self, configs: _Optional[_Iterable[str]] = ..., follows: _Optional[str] = ..., source: _Optional[str] = ..., revision: _Optional[str] = ..., split: _Optional[str] = ..., shown: _Optional[_Iterable[str]] = ..., withheld: _Optional[_Iterable[str]] = ..., extraction: _Optional[str] = ..., evaluators: _Optional[_Iterable[_Union[EvaluatorRef, _Mapping]]] = ..., primary_score: _Optional[str] = ..., worst: _Optional[float] = ..., groups: _Optional[_Iterable[str]] = ..., aggregate: _Optional[str] = ..., axes: _Optional[_Mapping[str, ProtocolAxis]] = ...) -> None: ...

class ProtocolAxis(_message.Message):
    __slots__ = ("status", "why")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    status: str
    why: str
    def __init__(self, status: _Optional[str] = ..., why: _Optional[str] = ...) -> None: ...

class MetricInfo(_message.Message):
    __slots__ = ("name", "description", "keys")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., keys: _Optional[_Iterable[str]] = ...) -> None: ...
