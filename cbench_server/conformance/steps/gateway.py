"""Words about attachments: what the suite does in the place of a daemon."""

import asyncio
from contextlib import suppress
from typing import Any, cast

import grpc

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_server.conformance.case_run import Stage
from cbench_server.conformance.gateway import Gateway
from cbench_server.conformance.messages import Facts, hello_facts
from cbench_server.conformance.outcomes import Broken
from cbench_server.conformance.steps.calls import operation

# Long enough for a process to start and dial.
_ABSENCE_S = 12.0


@operation("gateway", "tls refuse")
async def _gateway(stage: Stage, step: dict[str, Any]) -> Facts:
    files = None
    if step.get("tls"):
        folder = await stage.house.certificates()
        files = (folder / "server.pem", folder / "server.key")
    stage.gateway = Gateway(files)
    stage.gateway.refusals = [_code(name) for name in step.get("refuse", ())]
    await stage.gateway.start()
    stage.target = stage.gateway.target
    stage.on_end(stage.gateway.stop)
    return {"reason": ""}


def _code(name: str) -> grpc.StatusCode:
    return cast(grpc.StatusCode, getattr(grpc.StatusCode, name))


@operation("attached")
async def _attached(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.gateway is not None
    assert stage.program is not None
    stage.session = await stage.program.while_running(stage.gateway.next_session())
    return {
        "reason": "",
        "authorization": stage.session.authorization,
        "attempts": stage.gateway.attempts,
        **hello_facts(stage.session.hello),
    }


@operation("no-attachment")
async def _no_attachment(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.gateway is not None
    with suppress(TimeoutError):
        await asyncio.wait_for(stage.gateway.next_session(), _ABSENCE_S)
        raise Broken("it attached")
    return {"reason": ""}


@operation("attempts")
async def _attempts(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.gateway is not None
    return {"reason": "", "attempts": stage.gateway.attempts}


@operation("refuse", "codes")
async def _refuse(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.gateway is not None
    stage.gateway.refusals = [_code(name) for name in step["codes"]]
    return {"reason": ""}


@operation("hang-up")
async def _hang_up(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.session is not None
    stage.session.break_off()
    return {"reason": ""}


@operation("restart-gateway")
async def _restart_gateway(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.gateway is not None
    await stage.gateway.stop()
    await stage.gateway.start()
    return {"reason": ""}


@operation("drain")
async def _drain(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.session is not None
    drain = gateway_pb2.Drain(reason="the conformance suite drains")
    stage.session.outgoing.put_nowait(gateway_pb2.AttachResponse(drain=drain))
    return {"reason": ""}


@operation("drained")
async def _drained(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.session is not None
    await stage.session.drained.wait()
    return {"reason": ""}


@operation("session-end")
async def _session_end(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.session is not None
    await stage.session.ended.wait()
    return {"reason": ""}
