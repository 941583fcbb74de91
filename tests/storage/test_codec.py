"""What goes into the store comes out, with its types."""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cbench_server.events import RowScored
from cbench_server.results import EvalRow, Failure
from cbench_server.storage import codec

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.binary()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
records = st.dictionaries(st.text(), values, max_size=6)


def typed(value: Any) -> Any:
    """Make 1, 1.0 and True differ, and one NaN equal to another."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [typed(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return "float", "nan"
    return type(value).__name__, value, math.copysign(1, value) if value == 0.0 else None


failures = st.builds(Failure, st.text(), st.text(), st.text(), st.integers(0, 9), st.booleans())
rows = st.builds(
    EvalRow,
    system=st.text(),
    example_id=st.text() | st.integers(-(2**63), 2**64 - 1),
    scores=st.dictionaries(st.text(), st.floats(allow_nan=False), max_size=3),
    input_tokens=st.integers(0, 2**40),
    output_tokens=st.integers(0, 2**40),
    ordinal=st.integers(0, 2**40),
    repeat=st.integers(0, 100),
    metadata=records,
    usage=st.none() | records,
    failure=st.none() | failures,
    evaluator_failures=st.dictionaries(st.text(), failures, max_size=2),
    details=st.dictionaries(st.text(), records, max_size=2),
    processed=st.none() | records,
    latency=st.floats(0, 1e6),
)


@given(records)
def test_examples_come_back_with_their_types(record: dict[str, Any]) -> None:
    packed = codec.pack(codec.encode_fields(record))
    assert typed(codec.decode_fields(codec.unpack(packed))) == typed(record)


@given(rows)
def test_rows_come_back_with_their_types(row: EvalRow) -> None:
    event = codec.encode_event(RowScored(row))
    event.pack_body()
    body = None if event.body is None else codec.unpack(event.body)
    found = codec.decode_row(event.head, body)
    for field in fields(EvalRow):
        assert typed(getattr(found, field.name)) == typed(getattr(row, field.name)), field.name


def test_a_number_of_a_type_made_from_float_is_stored_as_float() -> None:
    class Score(float):
        pass

    row = EvalRow("a", 1, {"f1": Score(0.5)}, 1, 1)
    found = codec.decode_row(codec.encode_event(RowScored(row)).head, None)
    assert type(found.scores["f1"]) is float


def test_long_bodies_are_compressed_and_noise_is_not() -> None:
    assert len(codec.pack(b"word " * 10_000)) < 1000
    noise = bytes(range(256)) * 4
    assert codec.pack(noise)[1:] == noise


def test_a_head_from_before_a_field_existed_reads_as_its_default() -> None:
    row = EvalRow("a", 1, {}, 1, 1)
    older = codec.encode_fields(
        {"system": "a", "example_id": 1, "scores": {}, "input_tokens": 1, "output_tokens": 1}
    )
    assert codec.decode_row(older, None) == row


def test_the_head_does_not_carry_the_output(make_row: Callable[..., EvalRow]) -> None:
    row = make_row(0, processed={"response": "x" * 1000})
    head = codec.encode_event(RowScored(row)).head
    assert len(head) < 200
    assert codec.decode_row(head, None) == replace(row, processed=None)
