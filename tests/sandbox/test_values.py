"""What goes out comes back; what was not encoded by us is refused."""

import collections
import datetime
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.sandbox.errors import decode_error, encode_error
from cbench_server.sandbox.values import MAX_DEPTH, decode, encode

atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
)
keys = atoms | st.tuples(st.integers(), st.text(max_size=3)) | st.frozensets(st.integers())
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner)
        | st.sets(keys)
        | st.lists(inner).map(collections.deque)
        | st.dictionaries(keys, inner).map(collections.OrderedDict)
    ),
)


def refuse(value: Any) -> Any:
    raise ValueError(f"unknown: {value!r}")


def crossed(value: Any) -> Any:
    return decode(json.loads(json.dumps(encode(value, refuse))), refuse)


@given(values)
def test_what_goes_out_comes_back(value: Any) -> None:
    back = crossed(value)
    assert back == value
    assert type(back) is type(value)


class Loud(int):
    """Equal to all."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __add__(self, other: int) -> int:
        return 94


class Masked(str):
    """Says something else than it is."""

    def __str__(self) -> str:
        return "masked"

    def __iter__(self) -> Any:
        return iter("masked")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Loud(1), 1),
        ([Loud(1), {"a": Loud(2)}], [1, {"a": 2}]),
        (Masked("real"), "real"),
        (type("L", (list,), {"__iter__": lambda self: iter([9])})([1]), [1]),
        (type("D", (dict,), {"keys": lambda self: [9]})({1: 2}), {1: 2}),
        (type("T", (datetime.date,), {"__eq__": lambda *a: True})(2024, 1, 1), None),
    ],
)
def test_a_subclass_arrives_as_its_plain_value(value: Any, plain: Any) -> None:
    handles: list[Any] = []
    wire = encode(value, lambda other: handles.append(other))
    assert (decode(wire, refuse) if wire is not None else None) == plain
    assert bool(handles) == (plain is None)


@pytest.fixture
def many_frames() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("many_frames")
def test_depth_has_a_limit() -> None:
    value: list[Any] = []
    for _ in range(MAX_DEPTH):
        value = [value]
    assert crossed(value) == value
    with pytest.raises(ValueError, match="nested"):
        encode([[value]], refuse)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["int", "list", "range", "builtin", "x"]), inner)
        ),
    )
)
def test_a_forged_message_is_a_value_or_refused(wire: Any) -> None:
    try:
        decode(wire, refuse)
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError):
        return


@pytest.mark.parametrize("name", ["eval", "print", "__import__", "__debug__", "no_such"])
def test_only_types_travel_by_name(name: str) -> None:
    with pytest.raises((ValueError, AttributeError)):
        decode({"builtin": name}, refuse)


class Own(KeyError):
    """Not a builtin class."""


def test_an_exception_keeps_its_nearest_builtin_class_arguments_and_attributes() -> None:
    error = Own("k", 2)
    error.code = 7  # type: ignore[attr-defined] # as programs do
    back: Any = decode_error(json.loads(json.dumps(encode_error(error))))
    assert type(back) is KeyError
    assert (back.args, back.code) == (("k", 2), 7)
