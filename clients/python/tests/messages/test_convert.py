"""What goes out comes back; what cannot go is refused by name."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_client._gen.cbench.v1 import example_pb2, failure_pb2, system_pb2
from cbench_client.errors import RemoteFailure, Unencodable
from cbench_client.messages import convert, failures

text = st.text(st.characters(exclude_categories=["Cs"]))
int64 = st.integers(-(2**63), 2**63 - 1)
scalars = st.none() | st.booleans() | int64 | st.floats() | text | st.binary()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
payloads = st.dictionaries(text.filter(lambda key: key not in ("id", "dataset")), values)
examples = st.builds(
    lambda payload, fixed: {**fixed, **payload},
    payloads,
    st.fixed_dictionaries({}, optional={"id": text | int64, "dataset": text}),
)


def same(left: Any, right: Any) -> bool:
    """Equality that tells 1, 1.0 and True apart, and takes NaN for itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return bool(left == right)


@given(values)
def test_a_value_survives_the_wire(value: Any) -> None:
    wire = convert.value_to_proto(value).SerializeToString()
    assert same(convert.value_from_proto(example_pb2.Value.FromString(wire)), value)


@given(examples)
def test_an_example_survives_the_wire(example: dict[str, Any]) -> None:
    wire = convert.example_to_proto(example).SerializeToString()
    assert same(convert.example_from_proto(example_pb2.Example.FromString(wire)), example)


@given(examples, examples)
def test_what_a_system_returns_survives_with_its_carried_fields(
    original: dict[str, Any], changes: dict[str, Any]
) -> None:
    processed = {**original, **changes}
    message = system_pb2.ProcessResponse()
    convert.processed_to_proto(processed, original, message)
    returned = system_pb2.ProcessResponse.FromString(message.SerializeToString())
    assert same(convert.processed_from_proto(returned, original), processed)


turns = st.fixed_dictionaries(
    {"role": text, "content": text},
    optional={name: text.filter(bool) for name in ("speaker", "time", "session")},
)


@given(st.lists(turns), payloads)
def test_turns_survive_the_wire(spoken: list[dict[str, Any]], extra: dict[str, Any]) -> None:
    reserved = {"role", "content", "speaker", "time", "session"}
    extra = {key: value for key, value in extra.items() if key not in reserved}
    sent = [{**turn, **extra} for turn in spoken]
    message = system_pb2.ProcessConversationRequest()
    convert.turns_to_proto(sent, message.turns)
    returned = system_pb2.ProcessConversationRequest.FromString(message.SerializeToString())
    assert same(convert.turns_from_proto(returned.turns), sent)


counts = st.integers(0, 2**63 - 1)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "prompt_tokens": counts,
            "completion_tokens": counts,
            "total_tokens": counts,
            "cost_usd": st.floats(0, 1e6),
            "compute_seconds": st.integers(0, 10**12).map(lambda n: n / 1e9),
        },
    )
)
def test_usage_survives_the_wire(usage: dict[str, Any]) -> None:
    message = system_pb2.Usage()
    convert.usage_to_proto(usage, message)
    returned = convert.usage_from_proto(system_pb2.Usage.FromString(message.SerializeToString()))
    assert returned == usage


@given(
    st.sampled_from(sorted(failures.ORIGINS)),
    st.text(),
    st.booleans(),
    st.none() | st.integers(0, 10**6).map(float),
    st.integers(0, 1000),
)
def test_a_failure_survives_the_wire(
    origin: str, words: str, retryable: bool, delay: float | None, attempts: int
) -> None:
    failure = RemoteFailure(
        words, origin=origin, reason="X", retryable=retryable, retry_delay=delay, attempts=attempts
    )
    message = failure_pb2.Failure()
    failures.failure_to_proto(failure, message)
    returned = failures.failure_from_proto(message)
    assert str(returned) == words.encode(errors="replace").decode()
    for name in ("origin", "reason", "retryable", "retry_delay", "attempts"):
        assert getattr(returned, name) == getattr(failure, name)


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def test_the_deepest_nesting_allowed_is_parsed_by_the_other_side() -> None:
    batch = system_pb2.ProcessStreamRequest()
    request = batch.calls.add().request
    convert.example_to_proto({"deep": nested(convert.MAX_DEPTH)}, request.example)
    wire = batch.SerializeToString()
    [call] = system_pb2.ProcessStreamRequest.FromString(wire).calls
    decoded = convert.example_from_proto(call.request.example)
    assert decoded == {"deep": nested(convert.MAX_DEPTH)}


def test_tuples_and_bytearrays_cross_as_what_they_resemble() -> None:
    wire = convert.value_to_proto({"a": (1, 2), "b": bytearray(b"x")})
    assert convert.value_from_proto(wire) == {"a": [1, 2], "b": b"x"}


@pytest.mark.parametrize(
    ("example", "name"),
    [
        ({"n": 2**63}, '"n"'),
        ({"n": [0, {"m": -(2**63) - 1}]}, r'"n\[1\]\.m"'),
        ({"tags": {"a"}}, '"tags"'),
        pytest.param({"thing": object()}, r'"thing".*builtins\.object', id="object"),
        ({"context": "a\ud800b"}, '"context".*position 1'),
        ({"list": ["ok", "\udfff"]}, r'"list\[1\]"'),
        ({"map": {1: 2}}, "the key 1"),
        ({"map": {"\ud800": 2}}, "surrogate"),
        ({1: 2}, "the key 1"),
        ({"id": 2**63}, '"id"'),
        ({"id": True}, '"id".*True'),
        ({"id": 1.5}, '"id".*1.5'),
        ({"id": "\ud800"}, '"id"'),
        ({"deep": nested(31)}, '"deep.*nests more than 30'),
    ],
    ids=str,
)
def test_what_cannot_cross_is_refused_by_name(example: dict[Any, Any], name: str) -> None:
    with pytest.raises(Unencodable, match=name):
        convert.example_to_proto(example)


def test_a_dataset_name_that_is_not_unicode_is_refused_by_name() -> None:
    with pytest.raises(Unencodable, match="dataset"):
        convert.example_to_proto({"dataset": "\ud800"})


def test_a_turn_that_is_not_unicode_is_refused_by_name() -> None:
    with pytest.raises(Unencodable, match="content"):
        convert.turn_to_proto({"role": "user", "content": "\ud800"}, example_pb2.Turn())


def test_usage_beyond_64_bits_is_refused_by_name() -> None:
    message = system_pb2.ProcessResponse()
    processed = {"response": "r", "api_usage": {"prompt_tokens": 2**70}}
    with pytest.raises(Unencodable, match="prompt_tokens"):
        convert.processed_to_proto(processed, None, message)


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        (example_pb2.Value(), "no kind"),
        (example_pb2.Value(null_value=False), "null_value"),
        (example_pb2.Value(list_value={"values": [{}]}), r"value\[0\]"),
    ],
    ids=["no-kind", "false-null", "inside-a-list"],
)
def test_a_value_without_meaning_is_refused(wire: example_pb2.Value, name: str) -> None:
    with pytest.raises(Unencodable, match=name):
        convert.value_from_proto(wire)


def test_a_carried_field_the_example_lacks_is_refused() -> None:
    message = system_pb2.ProcessResponse(carried_fields=["context"])
    with pytest.raises(Unencodable, match='"context"'):
        convert.processed_from_proto(message, {"id": 1})
