"""Words about the life of a process: started, connected to, signalled, ended."""

import signal
import socket
from typing import Any

from cbench_client.remote.channel import Tls
from cbench_server.conformance.case_run import Stage
from cbench_server.conformance.messages import Facts
from cbench_server.conformance.program import Program
from cbench_server.conformance.steps.calls import operation


@operation("start", "flags asked connect address")
async def _start(stage: Stage, step: dict[str, Any]) -> Facts:
    program = Program(stage.house.command)
    stage.on_end(program.end)
    stage.program = program
    await program.start(*step.get("flags", ()), is_asked=step.get("asked", True))
    if step.get("connect", True):
        stage.connect(await program.target())
    return {"reason": "", "lines": program.lines}


@operation("free-port")
async def _free_port(stage: Stage, step: dict[str, Any]) -> Facts:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        stage.target = f"127.0.0.1:{taken.getsockname()[1]}"
    return {"reason": ""}


@operation("connect", "ca cert key token")
async def _connect(stage: Stage, step: dict[str, Any]) -> Facts:
    tls = None
    if "ca" in step:
        tls = Tls.from_files(step["ca"], step.get("cert"), step.get("key"))
    stage.connect(stage.target, tls=tls, token=step.get("token"))
    return {"reason": ""}


@operation("signal", "name")
async def _signal(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.program is not None
    stage.program.signal(getattr(signal, step["name"]))
    return {"reason": ""}


@operation("exit")
async def _exit(stage: Stage, step: dict[str, Any]) -> Facts:
    assert stage.program is not None
    code = await stage.program.exit_code()
    return {
        "reason": "",
        "code": code,
        "is_clean": code == 0,
        "has_failed": code is not None and code > 0,
        "lines": stage.program.lines,
        "stderr": stage.program.stderr,
    }
