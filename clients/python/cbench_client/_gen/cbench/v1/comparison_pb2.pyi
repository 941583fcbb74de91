from cbench_client._gen.cbench.v1 import evaluator_pb2 as _evaluator_pb2
from cbench_client._gen.cbench.v1 import example_pb2 as _example_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PolicyVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POLICY_VERDICT_UNSPECIFIED: _ClassVar[PolicyVerdict]
    POLICY_VERDICT_PASSED: _ClassVar[PolicyVerdict]
    POLICY_VERDICT_FAILED: _ClassVar[PolicyVerdict]
    POLICY_VERDICT_NOT_SHOWN: _ClassVar[PolicyVerdict]
    POLICY_VERDICT_NOT_MEASURED: _ClassVar[PolicyVerdict]
POLICY_VERDICT_UNSPECIFIED: PolicyVerdict
POLICY_VERDICT_PASSED: PolicyVerdict
POLICY_VERDICT_FAILED: PolicyVerdict
POLICY_VERDICT_NOT_SHOWN: PolicyVerdict
POLICY_VERDICT_NOT_MEASURED: PolicyVerdict

class Estimate(_message.Message):
    __slots__ = ("value", "standard_error", "low", "high")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    value: float
    standard_error: float
    low: float
    high: float
    def __init__(self, value: _Optional[float] = ..., standard_error: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class Comparison(_message.Message):
    __slots__ = ("systems", "pairs", "fronts", "notes", "groups")
    SYSTEMS_FIELD_NUMBER: _ClassVar[int]
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    FRONTS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    systems: _containers.RepeatedScalarFieldContainer[str]
    pairs: _containers.RepeatedCompositeFieldContainer[PairedDifference]
    fronts: _containers.RepeatedCompositeFieldContainer[Front]
    notes: _containers.RepeatedScalarFieldContainer[str]
    groups: _containers.RepeatedCompositeFieldContainer[GroupDifference]
    def __init__(self, systems: _Optional[_Iterable[str]] = ..., pairs: _Optional[_Iterable[_Union[PairedDifference, _Mapping]]] = ..., fronts: _Optional[_Iterable[_Union[Front, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ..., groups: _Optional[_Iterable[_Union[GroupDifference, _Mapping]]] = ...) -> None: ...

class PairedDifference(_message.Message):
    __slots__ = ("a", "b", "score", "examples", "clusters", "mean_a", "mean_b", "difference", "p", "p_adjusted", "test", "comparisons", "wins", "losses", "ties", "minimum_detectable", "effect", "more_examples", "flipped_to_a", "flipped_to_b", "flips", "costs", "in_points", "sentence", "disputed", "direction", "claimed")
    A_FIELD_NUMBER: _ClassVar[int]
    B_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    MEAN_A_FIELD_NUMBER: _ClassVar[int]
    MEAN_B_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    P_FIELD_NUMBER: _ClassVar[int]
    P_ADJUSTED_FIELD_NUMBER: _ClassVar[int]
    TEST_FIELD_NUMBER: _ClassVar[int]
    COMPARISONS_FIELD_NUMBER: _ClassVar[int]
    WINS_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    TIES_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_DETECTABLE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    MORE_EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    FLIPPED_TO_A_FIELD_NUMBER: _ClassVar[int]
    FLIPPED_TO_B_FIELD_NUMBER: _ClassVar[int]
    FLIPS_FIELD_NUMBER: _ClassVar[int]
    COSTS_FIELD_NUMBER: _ClassVar[int]
    IN_POINTS_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    DISPUTED_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_FIELD_NUMBER: _ClassVar[int]
    a: str
    b: str
    score: str
    examples: int
    clusters: int
    mean_a: float
    mean_b: float
    difference: Estimate
    p: float
    p_adjusted: float
    test: str
    comparisons: int
    wins: int
    losses: int
    ties: int
    minimum_detectable: float
    effect: float
    more_examples: int
    flipped_to_a: int
    flipped_to_b: int
    flips: _containers.RepeatedCompositeFieldContainer[Flip]
    costs: _containers.RepeatedCompositeFieldContainer[CostChange]
    in_points: bool
    sentence: str
    disputed: bool
    direction: _evaluator_pb2.ScoreDirection
    claimed: bool
    def __init__(self, a: _Optional[str] = ..., b: _Optional[str] = ..., score: _Optional[str] = ..., examples: _Optional[int] = ..., clusters: _Optional[int] = ..., mean_a: _Optional[float] = ..., mean_b: _Optional[float] = ..., difference: _Optional[_Union[Estimate, _Mapping]] = ..., p: _Optional[float] = ..., p_adjusted: _Optional[float] = ..., test: _Optional[str] = ..., comparisons: _Optional[int] = ..., wins: _Optional[int] = ..., losses: _Optional[int] = ..., ties: _Optional[int] = ..., minimum_detectable: _Optional[float] = ..., effect: _Optional[float] = ..., more_examples: _Optional[int] = ..., flipped_to_a: _Optional[int] = ..., flipped_to_b: _Optional[int] = ..., flips: _Optional[_Iterable[_Union[Flip, _Mapping]]] = ..., costs: _Optional[_Iterable[_Union[CostChange, _Mapping]]] = ..., in_points: bool = ..., sentence: _Optional[str] = ..., disputed: bool = ..., direction: _Optional[_Union[_evaluator_pb2.ScoreDirection, str]] = ..., claimed: bool = ...) -> None: ...

class Flip(_message.Message):
    __slots__ = ("dataset", "example_id", "score_a", "score_b")
    DATASET_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_ID_FIELD_NUMBER: _ClassVar[int]
    SCORE_A_FIELD_NUMBER: _ClassVar[int]
    SCORE_B_FIELD_NUMBER: _ClassVar[int]
    dataset: str
    example_id: _example_pb2.ExampleId
    score_a: float
    score_b: float
    def __init__(self, dataset: _Optional[str] = ..., example_id: _Optional[_Union[_example_pb2.ExampleId, _Mapping]] = ..., score_a: _Optional[float] = ..., score_b: _Optional[float] = ...) -> None: ...

class CostChange(_message.Message):
    __slots__ = ("axis", "mean_a", "mean_b", "change")
    AXIS_FIELD_NUMBER: _ClassVar[int]
    MEAN_A_FIELD_NUMBER: _ClassVar[int]
    MEAN_B_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    axis: str
    mean_a: float
    mean_b: float
    change: Estimate
    def __init__(self, axis: _Optional[str] = ..., mean_a: _Optional[float] = ..., mean_b: _Optional[float] = ..., change: _Optional[_Union[Estimate, _Mapping]] = ...) -> None: ...

class Front(_message.Message):
    __slots__ = ("axis", "examples", "points")
    AXIS_FIELD_NUMBER: _ClassVar[int]
    EXAMPLES_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    axis: str
    examples: int
    points: _containers.RepeatedCompositeFieldContainer[FrontPoint]
    def __init__(self, axis: _Optional[str] = ..., examples: _Optional[int] = ..., points: _Optional[_Iterable[_Union[FrontPoint, _Mapping]]] = ...) -> None: ...

class FrontPoint(_message.Message):
    __slots__ = ("system", "quality", "cost", "layer", "probability")
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    LAYER_FIELD_NUMBER: _ClassVar[int]
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    system: str
    quality: Estimate
    cost: Estimate
    layer: int
    probability: float
    def __init__(self, system: _Optional[str] = ..., quality: _Optional[_Union[Estimate, _Mapping]] = ..., cost: _Optional[_Union[Estimate, _Mapping]] = ..., layer: _Optional[int] = ..., probability: _Optional[float] = ...) -> None: ...

class GroupDifference(_message.Message):
    __slots__ = ("field", "group", "pair")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PAIR_FIELD_NUMBER: _ClassVar[int]
    field: str
    group: str
    pair: PairedDifference
    def __init__(self, field: _Optional[str] = ..., group: _Optional[str] = ..., pair: _Optional[_Union[PairedDifference, _Mapping]] = ...) -> None: ...

class PolicyCheck(_message.Message):
    __slots__ = ("policy", "verdict", "measured", "explanation", "unsuited")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    UNSUITED_FIELD_NUMBER: _ClassVar[int]
    policy: str
    verdict: PolicyVerdict
    measured: Estimate
    explanation: str
    unsuited: bool
    def __init__(self, policy: _Optional[str] = ..., verdict: _Optional[_Union[PolicyVerdict, str]] = ..., measured: _Optional[_Union[Estimate, _Mapping]] = ..., explanation: _Optional[str] = ..., unsuited: bool = ...) -> None: ...
