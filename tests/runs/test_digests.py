"""Digests: equal exactly for equal content."""

import itertools
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.errors import Unencodable
from cbench_server.runs.digests import call_id, canonical_digest, spec_digest
from cbench_server.spec import DatasetRef, RunSpec, SystemRef

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.0, 1.0, -1.5])
values = st.recursive(
    scalars | st.text(max_size=2) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)
records = st.dictionaries(st.text(max_size=2), values, max_size=4)


def typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, value


@given(records, records)
def test_digests_are_equal_exactly_for_equal_records(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    is_same = canonical_digest(one) == canonical_digest(other)
    assert is_same == (typed(one) == typed(other))


@given(records)
def test_the_order_of_keys_does_not_matter_at_any_level(record: dict[str, Any]) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(item) for key, item in reversed(value.items())}
        return [turned(item) for item in value] if isinstance(value, list) else value

    assert canonical_digest(turned(record)) == canonical_digest(record)


def test_values_that_look_alike_differ() -> None:
    alike = [1, 1.0, "1", True, b"1", [1], {"1": 1}, None, "", b"", [], {}, 0, 0.0, False]
    digests = [canonical_digest({"x": value}) for value in alike]
    assert len(set(digests)) == len(alike)


def test_digests_do_not_change_between_versions() -> None:
    record = {"id": 1, "context": "é", "deep": {"b": [1.5, None, b"\0"], "a": True}}
    assert canonical_digest(record) == (
        "e083618a3518618904f37d0207658cf59c17a6362a34c583d0480236bd6d8958"
    )
    assert call_id("r1", "a", 2, 0) == "109fb9de1211be962a6a2952"


@pytest.mark.parametrize(
    ("record", "path"),
    [
        ({"a": {"b": [0, {1}]}}, r"a\.b\[1\]"),
        ({"a": {1: 2}}, '"a" has the key 1'),
        ({1: 2}, "the key 1"),
        ({"a": [2**64]}, r"a\[0\]"),
        ({"a": {"b": "x\ud800"}}, r"a\.b.*position 1"),
        ({"a": {"\ud800": 1}}, "a.<key>"),
        ({"a": object()}, "builtins.object"),
    ],
    ids=["set", "inner-key", "key", "integer", "surrogate", "surrogate-key", "object"],
)
def test_what_has_no_canonical_form_is_named(record: dict[str, Any], path: str) -> None:
    with pytest.raises(Unencodable, match=path):
        canonical_digest(record)


def test_nesting_without_end_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["x"] = endless
    with pytest.raises(Unencodable, match="levels deep"):
        canonical_digest(endless)


def test_specs_with_equal_content_have_equal_digests() -> None:
    spec = RunSpec((SystemRef("a", options={"x": 1, "y": 2}),), (DatasetRef("qa"),))
    same = RunSpec((SystemRef("a", options={"y": 2, "x": 1}),), (DatasetRef("qa"),))
    assert spec_digest(spec) == spec_digest(same)
    assert spec_digest(spec) != spec_digest(replace(spec, repeats=2))


def test_every_row_key_has_its_own_call_id_in_every_process() -> None:
    keys = list(itertools.product(["r1", "r11"], ["a", "1a"], [0, 1, 11], [0, 1]))
    ids = [call_id(*key) for key in keys]
    assert len(set(ids)) == len(keys)
    program = "from cbench_server.runs.digests import call_id; print(call_id('r1', 'a', 0, 0))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert printed.stdout.decode().strip() == ids[0]
