"""The server: health, reflection, addresses, what it refuses to serve."""

from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from cbench_client.errors import CannotServe, NotServable
from cbench_client.host.server import Server
from tests.fixtures.serving import AsyncEcho, Echo, Length, serving, system


async def test_health_knows_the_services_served() -> None:
    async with serving(Echo()) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", "cbench.v1.System"):
            reply = await stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Check(health_pb2.HealthCheckRequest(service="cbench.v1.Evaluator"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_lists_the_services_served() -> None:
    async with serving(Echo(), Length()) as channel:
        call = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        reply = await call.read()
        await call.done_writing()
    names = {service.name for service in reply.list_services_response.service}
    assert {"cbench.v1.System", "cbench.v1.Evaluator", "grpc.health.v1.Health"} <= names


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_finds_services_methods_messages_and_values(version: str) -> None:
    """What `grpcurl describe` asks for, by either name of the service."""
    known = {
        "cbench.v1.System": "cbench/v1/system.proto",
        "cbench.v1.System.Process": "cbench/v1/system.proto",
        "cbench.v1.ProcessRequest": "cbench/v1/system.proto",
        "cbench.v1.CAPABILITY_STREAM": "cbench/v1/system.proto",
        "cbench.v1.Capability.CAPABILITY_STREAM": "cbench/v1/system.proto",
        f"grpc.reflection.{version}.ServerReflection": f"{version}/reflection.proto",
    }
    path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    async with serving(Echo()) as channel:
        call = channel.stream_stream(
            path,
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )()
        for symbol, file in known.items():
            asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol)
            await call.write(asked)
            found = (await call.read()).file_descriptor_response.file_descriptor_proto
            names = [FileDescriptorProto.FromString(each).name for each in found]
            assert [name for name in names if name.endswith(file)], (symbol, names)
        for unknown in ("cbench.v1.System.Nope", "cbench.v1.Nope", "nope"):
            asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol=unknown)
            await call.write(asked)
            assert (await call.read()).error_response.error_code == 5
        await call.done_writing()


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([Echo(), Echo()], 'two systems are called "echo"'),
        ([Echo], "Echo is a class"),
        ([object()], "an object cannot be served"),
        ([], "nothing to serve"),
        ([system(lambda example: example, name="a/b")], "a/b"),
        ([system(lambda example: example, name="")], "name"),
        ([system(lambda example: example, max_concurrency=0)], "max_concurrency"),
    ],
    ids=["twice", "class", "object", "nothing", "slash", "empty", "limit"],
)
def test_what_cannot_be_served_is_refused_at_once(objects: list[Any], text: str) -> None:
    with pytest.raises(NotServable, match=text):
        Server(objects)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("0.0.0.0:0", "unsafe=True"),
        ("[::]:0", "unsafe=True"),
        ("127.0.0.1", "no port"),
    ],
    ids=["every-interface", "ipv6", "no-port"],
)
def test_an_address_that_is_not_safe_or_whole_is_refused(address: str, text: str) -> None:
    with pytest.raises(CannotServe, match=text):
        Server(Echo(), address)


def test_a_taken_port_is_named() -> None:
    with Server(Echo()) as first, pytest.raises(CannotServe, match=first.address):
        Server(AsyncEcho(), first.address).start()


def test_a_taken_socket_is_named(tmp_path: Any) -> None:
    address = f"unix:{tmp_path}/s.sock"
    with Server(Echo(), address), pytest.raises(CannotServe, match="s.sock"):
        Server(AsyncEcho(), address).start()
