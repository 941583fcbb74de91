"""Parts of a message are counted before it is parsed."""

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from cbench_client._gen.cbench.v1 import system_pb2
from cbench_client.messages import convert
from cbench_client.messages.parts import Crowded, check_parts
from cbench_client.messages.room import MAX_ANSWER_VALUES

OF = system_pb2.ProcessResponse.DESCRIPTOR


def encoded(value: object) -> bytes:
    message = system_pb2.ProcessResponse()
    convert.fields_to_proto({"response": value}, message.fields)
    return message.SerializeToString()


@pytest.mark.parametrize(
    "value",
    [
        [True] * MAX_ANSWER_VALUES,
        {f"k{number}": number for number in range(MAX_ANSWER_VALUES)},
        ["text of more than a few letters"] * MAX_ANSWER_VALUES,
        [[[1.5] * 100] * 10] * (MAX_ANSWER_VALUES // 1_100),
        "x" * 1_000_000,
    ],
    ids=["truths", "mapping", "texts", "nested", "one text"],
)
def test_what_an_answer_may_hold_passes(value: object) -> None:
    check_parts(encoded(value), OF)


@pytest.mark.parametrize(
    "value",
    [
        [True] * 300_000,
        [[]] * 300_000,
        [[[True] * 4] * 10] * 10_000,
        {f"{number}": None for number in range(150_000)},
    ],
    ids=["truths", "empty", "nested", "mapping"],
)
def test_a_crowd_is_refused(value: object) -> None:
    with pytest.raises(Crowded, match="more than 250,000 parts"):
        check_parts(encoded(value), OF)


def test_fields_that_nobody_knows_and_groups_count() -> None:
    for part in (b"\xf8\x07\x01", b"\xfb\x07\xfc\x07", b"\xfa\x07\x00", b"\xfd\x07abcd"):
        check_parts(part * 1_000, OF)
        with pytest.raises(Crowded):
            check_parts(part * 300_000, OF)


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x05ab", b"\xff" * 11, b"\x08\x80"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        check_parts(data, OF)


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_values)
def test_whatever_is_encoded_passes(value: object) -> None:
    check_parts(encoded(value), OF)


@given(st.binary(max_size=300))
def test_whatever_the_parser_takes_passes(data: bytes) -> None:
    try:
        system_pb2.ProcessResponse.FromString(data)
    except DecodeError:
        return
    check_parts(data, OF)
