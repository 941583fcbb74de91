"""Operations on what a process says about itself: descriptions, health, reflection."""

import asyncio
from typing import Any

import grpc
import grpc.aio
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from cbench_server.conformance.case_run import CaseRun
from cbench_server.conformance.declarations import (
    directions_are_stated,
    option_facts,
    options_are_valid,
)
from cbench_server.conformance.messages import Facts, info_facts
from cbench_server.conformance.outcomes import EOF, Broken
from cbench_server.conformance.steps.calls import operation
from cbench_server.conformance.subject import SERVICES

_REFLECTION = (
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
)


@operation("describe", "of")
async def _describe(run: CaseRun, step: dict[str, Any]) -> Facts:
    service, message = SERVICES[step["of"]]
    ask = run.channel.unary_unary(f"/{service}/Describe")
    answer = message.FromString(await ask(b""))
    again = message.FromString(await ask(b""))
    infos = list(getattr(answer, "evaluators", None) or answer.systems)
    names = [info.name for info in infos]
    return {
        "is_repeatable": answer == again,
        "sdk": answer.sdk,
        "names": sorted(names),
        "are_unique": len(set(names)) == len(names),
        "are_valid": all(0 < len(name) <= 200 and "/" not in name for name in names),
        "limits_are_valid": all(
            info.max_concurrency >= 1 for info in infos if info.HasField("max_concurrency")
        ),
        "options_are_valid": all(map(options_are_valid, infos)),
        "options": {info.name: facts for info in infos if (facts := option_facts(info))},
        "directions_are_stated": all(map(directions_are_stated, infos)),
        "infos": {info.name: info_facts(info) for info in infos},
    }


@operation("raw", "method bytes")
async def _raw(run: CaseRun, step: dict[str, Any]) -> Facts:
    try:
        await run.channel.unary_unary(step["method"])(step["bytes"])
    except grpc.aio.AioRpcError as error:
        return {"code": error.code().name}
    return {"code": "OK"}


@operation("health", "service")
async def _health(run: CaseRun, step: dict[str, Any]) -> Facts:
    check = run.channel.unary_unary("/grpc.health.v1.Health/Check")
    request = health_pb2.HealthCheckRequest(service=step.get("service", ""))
    try:
        data = await check(request.SerializeToString())
    except grpc.aio.AioRpcError as error:
        return {"status": error.code().name}
    return {"status": _status(data)}


def _status(data: bytes) -> str:
    number = health_pb2.HealthCheckResponse.FromString(data).status
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(number))


@operation("watch-health", "service as")
async def _watch_health(run: CaseRun, step: dict[str, Any]) -> None:
    watch = run.channel.unary_stream("/grpc.health.v1.Health/Watch")
    request = health_pb2.HealthCheckRequest(service=step.get("service", ""))
    run.watches[step["as"]] = watch(request.SerializeToString())


@operation("next-health", "of")
async def _next_health(run: CaseRun, step: dict[str, Any]) -> Facts:
    try:
        data = await run.watches[step["of"]].read()
    except grpc.aio.AioRpcError as error:
        return {"status": error.code().name}
    return {"status": "ENDED" if data is EOF else _status(data)}


@operation("reflection", "symbol")
async def _reflection(run: CaseRun, step: dict[str, Any]) -> Facts:
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    if "symbol" in step:
        request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=step["symbol"])
    answer = await _reflect(run, request.SerializeToString())
    files = [
        descriptor_pb2.FileDescriptorProto.FromString(data)
        for data in answer.file_descriptor_response.file_descriptor_proto
    ]
    return {
        "services": sorted(each.name for each in answer.list_services_response.service),
        "files": sorted(file.name for file in files),
        "methods": sorted(
            method.name
            for file in files
            for service in file.service
            if f"{file.package}.{service.name}" == step.get("symbol")
            for method in service.method
        ),
    }


async def _reflect(run: CaseRun, request: bytes) -> reflection_pb2.ServerReflectionResponse:
    for method in _REFLECTION:
        call = run.channel.stream_stream(method)()
        try:
            await call.write(request)
            await call.done_writing()
            data = await call.read()
        except (grpc.RpcError, asyncio.InvalidStateError):
            continue
        if data is not EOF:
            return reflection_pb2.ServerReflectionResponse.FromString(data)
    raise Broken("there is no reflection service")
