"""Specs as typed dicts: each has the fields of its message, and a run can be made from it."""

from typing import get_type_hints, is_typeddict

import pytest

import cbench_client
from cbench_client import RunSpec
from cbench_client._gen import specs
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.bench.spec import message_from_dict


@pytest.mark.parametrize("name", specs.__all__)
def test_a_typed_dict_has_every_field_of_its_message(name: str) -> None:
    typed, message = getattr(specs, name), getattr(bench_pb2, name)
    assert is_typeddict(typed)
    assert list(get_type_hints(typed)) == list(message.DESCRIPTOR.fields_by_name)


def test_what_a_typed_dict_says_can_be_sent() -> None:
    spec: RunSpec = {
        "systems": [{"target": "h:1", "tls": {"server_name": "h"}, "role": "control"}],
        "datasets": [{"name": "mini-qa"}],
        "kind": "memory",
        "row_timeout": 2.5,
        "labels": {"a": "b"},
        "reader": {"base_url": "http://h", "options": {"temperature": 0}},
    }
    message = message_from_dict(bench_pb2.RunSpec(), spec)
    assert message.row_timeout.ToMilliseconds() == 2500
    assert message.kind == bench_pb2.RUN_KIND_MEMORY
    assert message.systems[0].role == bench_pb2.SYSTEM_ROLE_CONTROL


def test_the_dicts_that_users_write_are_exported() -> None:
    assert {"RunSpec", "SystemRef", "DatasetRef", "EvaluatorRef"} <= set(cbench_client.__all__)
