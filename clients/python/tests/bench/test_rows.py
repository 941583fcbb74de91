"""Rows as dicts: every field of the contract is there, under the keys that `Row` declares."""

from cbench_client import Row, row_to_dict
from cbench_client._gen.cbench.v1 import bench_pb2

RENAMED = {"handler_time": "handler_seconds"}


def least() -> bench_pb2.EvalRow:
    row = bench_pb2.EvalRow(system="s")
    row.example_id.text = "e"
    return row


def filled() -> bench_pb2.EvalRow:
    row = least()
    row.processed["response"].string_value = "r"
    row.original.SetInParent()
    return row


def test_every_field_of_a_row_has_a_key() -> None:
    fields = {field.name for field in bench_pb2.EvalRow.DESCRIPTOR.fields}
    assert set(row_to_dict(filled())) == {RENAMED.get(name, name) for name in fields}


def test_the_keys_are_those_declared() -> None:
    assert set(row_to_dict(filled())) == set(Row.__annotations__)
    without = {"processed", "original"}
    assert set(row_to_dict(least())) == set(Row.__annotations__) - without
