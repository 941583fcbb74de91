"""Operations on attachments, in which the suite takes the place of a daemon."""

import asyncio
from contextlib import suppress
from typing import Any, cast

import grpc

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_server.conformance.case_run import CaseRun
from cbench_server.conformance.gateway import Gateway
from cbench_server.conformance.messages import Facts, hello_facts
from cbench_server.conformance.outcomes import Broken
from cbench_server.conformance.steps.calls import operation

# Long enough for a process to start and dial.
_ABSENCE_S = 12.0


@operation("gateway", "tls refuse")
async def _gateway(run: CaseRun, step: dict[str, Any]) -> None:
    files = None
    if step.get("tls"):
        folder = await run.subject.certificates()
        files = (folder / "server.pem", folder / "server.key")
    run.gateway = Gateway(files)
    run.gateway.refusals = [_code(name) for name in step.get("refuse", ())]
    await run.gateway.start()
    run.target = run.gateway.target
    run.on_end(run.gateway.stop)


def _code(name: str) -> grpc.StatusCode:
    return cast(grpc.StatusCode, getattr(grpc.StatusCode, name))


@operation("attached")
async def _attached(run: CaseRun, step: dict[str, Any]) -> Facts:
    assert run.program is not None
    run.session = await run.program.while_running(run.gateway.next_session())
    return {
        "authorization": run.session.authorization,
        "attempts": run.gateway.attempts,
        **hello_facts(run.session.hello),
    }


@operation("no-attachment")
async def _no_attachment(run: CaseRun, step: dict[str, Any]) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(run.gateway.next_session(), _ABSENCE_S)
        raise Broken("it attached")


@operation("attempts")
async def _attempts(run: CaseRun, step: dict[str, Any]) -> Facts:
    return {"attempts": run.gateway.attempts}


@operation("refuse", "codes")
async def _refuse(run: CaseRun, step: dict[str, Any]) -> None:
    run.gateway.refusals = [_code(name) for name in step["codes"]]


@operation("hang-up")
async def _hang_up(run: CaseRun, step: dict[str, Any]) -> None:
    assert run.session is not None
    run.session.break_off()


@operation("restart-gateway")
async def _restart_gateway(run: CaseRun, step: dict[str, Any]) -> None:
    await run.gateway.stop()
    await run.gateway.start()


@operation("drain")
async def _drain(run: CaseRun, step: dict[str, Any]) -> None:
    assert run.session is not None
    drain = gateway_pb2.Drain(reason="the conformance suite drains")
    run.session.outgoing.put_nowait(gateway_pb2.AttachResponse(drain=drain))


@operation("drained")
async def _drained(run: CaseRun, step: dict[str, Any]) -> None:
    assert run.session is not None
    await run.session.drained.wait()


@operation("session-end")
async def _session_end(run: CaseRun, step: dict[str, Any]) -> None:
    assert run.session is not None
    await run.session.ended.wait()
