"""Requests of a newer client: what this daemon does not know is refused, and by what path."""

from collections.abc import Iterator

import grpc
import pytest

from cbench_client import BenchClient
from cbench_client._gen.cbench.v1 import bench_pb2
from cbench_client.messages.error_details import KEY, decode_details
from cbench_server.daemon.embedded import embedded

# Field 9999, a varint, as a newer contract might have it.
NEWER = b"\xf8\xf0\x04\x01"


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
