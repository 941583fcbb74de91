"""Requests of a newer client: what this daemon does not know is refused, and by what path."""

from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2, evaluator_pb2
from cbench_client.messages.error_details import KEY, decode_details
from cbench_server.daemon.embedded import embedded

# Field 9999, a varint, as a newer contract might have it.
NEWER = b"\xf8\xf0\x04\x01"
METHODS = [
    method
    for file in (bench_pb2.DESCRIPTOR, evaluator_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for method in service.methods
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with embedded(home=tmp_path_factory.mktemp("home")) as address:
        yield address


def evaluation() -> bench_pb2.EvaluateRequest:
    request = bench_pb2.EvaluateRequest(request_id="one")
    request.spec.systems.add(builtin="identity")
    request.spec.systems.add(builtin="truncate-tail").options["ratio"].double_value = 0.5
    request.spec.datasets.add(name="mini-qa", max_examples=1)
    return request


def test_a_request_without_them_is_served(address: str) -> None:
    with BenchClient(address) as client:
        events = list(client.evaluate(evaluation().spec))
    assert events[-1].finished.state == bench_pb2.RUN_STATE_SUCCEEDED


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "EvaluateRequest"),
        ("spec", "RunSpec"),
        ("spec.systems[1]", "SystemRef"),
        ('spec.systems[1].options["ratio"]', "Value"),
        ("spec.datasets[0]", "DatasetRef"),
    ],
)
def test_a_field_of_a_newer_contract_is_refused(address: str, where: str, message: str) -> None:
    request = evaluation()
    part = {
        "": request,
        "spec": request.spec,
        "spec.systems[1]": request.spec.systems[1],
        'spec.systems[1].options["ratio"]': request.spec.systems[1].options["ratio"],
        "spec.datasets[0]": request.spec.datasets[0],
    }[where]
    part.MergeFromString(NEWER)
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as refused:
        list(channel.unary_stream("/cbench.v1.Bench/Evaluate")(request.SerializeToString()))
    told = refused.value
    trailers = dict(told.trailing_metadata())
    details = decode_details(trailers[KEY])
    assert told.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert trailers["cbench-reason"] == "UNKNOWN_FIELD"
    assert [each.field for each in details.violations] == ([where] if where else [])
    assert told.details().startswith(f"field 9999 of {message} is not known to this daemon")


Fill = Callable[[Any], Any]


def enums_within(kind: Any, seen: tuple[str, ...] = ()) -> Iterator[tuple[str, Fill]]:
    """Yield the path of each enum in a message, and what gives it a value nobody knows."""
    if kind.full_name in seen:
        return
    for field in kind.fields:
        is_map = bool(field.message_type and field.message_type.GetOptions().map_entry)
        place = '["x"]' if is_map else "[0]" if field.is_repeated else ""
        if field.enum_type is not None:
            values = [9999] if field.is_repeated else 9999

            def fill(message: Any, name: str = field.name, values: Any = values) -> None:
                message.MergeFrom(type(message)(**{name: values}))

            yield f"{field.name}{place}", fill
        elif field.message_type is not None:
            of = field.message_type.fields_by_name["value"] if is_map else field
            if of.message_type is None:
                continue
            for path, inner in enums_within(of.message_type, (*seen, kind.full_name)):

                def fill(
                    message: Any, field: Any = field, is_map: bool = is_map, inner: Fill = inner
                ) -> None:
                    part = getattr(message, field.name)
                    inner(part["x"] if is_map else part.add() if field.is_repeated else part)

                yield f"{field.name}{place}.{path}", fill


UNKNOWN = [
    pytest.param(method, path, fill, id=f"{method.name} {path}")
    for method in METHODS
    for path, fill in enums_within(method.input_type)
]


def test_enums_are_found_where_they_are_known_to_be() -> None:
    found = {(each.values[0].name, each.values[1]) for each in UNKNOWN}
    assert {("Evaluate", "spec.kind"), ("ListRuns", "states[0]")} <= found
    assert ("Evaluate", "spec.systems[0].role") in found


@pytest.mark.parametrize(("method", "path", "fill"), UNKNOWN)
def test_a_value_that_no_enum_has_is_refused(
    address: str, method: Any, path: str, fill: Fill
) -> None:
    request = message_factory.GetMessageClass(method.input_type)()
    fill(request)
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as refused:
        call = channel.stream_stream(f"/{method.containing_service.full_name}/{method.name}")
        list(call(iter([request.SerializeToString()])))
    told = refused.value
    trailers = dict(told.trailing_metadata())
    assert told.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert trailers["cbench-reason"] == "UNKNOWN_FIELD"
    assert [each.field for each in decode_details(trailers[KEY]).violations] == [path]
    assert told.details().startswith("value 9999 of ")
    assert "_UNSPECIFIED, " in told.details()


def test_what_the_enums_have_is_served(address: str) -> None:
    request = evaluation()
    request.spec.kind = bench_pb2.RUN_KIND_PROCESS
    with BenchClient(address) as client:
        events = list(client.evaluate(request.spec))
        states = [bench_pb2.RUN_STATE_SUCCEEDED]
        with grpc.insecure_channel(address) as channel:
            answer = bench_pb2.ListRunsResponse.FromString(
                channel.unary_unary("/cbench.v1.Bench/ListRuns")(
                    bench_pb2.ListRunsRequest(states=states).SerializeToString()
                )
            )
    assert events[-1].finished.run_id in [run.run_id for run in answer.runs]
