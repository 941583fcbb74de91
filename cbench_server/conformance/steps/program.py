"""Operations on a process: start, connect, signal, wait for its end."""

import signal
import socket
from typing import Any

from cbench_client.remote.channel import Tls
from cbench_server.conformance.case_run import CaseRun
from cbench_server.conformance.messages import Facts
from cbench_server.conformance.program import EXIT_S, Program
from cbench_server.conformance.steps.calls import operation


@operation("start", "flags asked connect address")
async def _start(run: CaseRun, step: dict[str, Any]) -> Facts:
    program = Program(run.subject.command)
    run.on_end(program.end)
    run.program = program
    await program.start(*step.get("flags", ()), is_asked=step.get("asked", True))
    if step.get("connect", True):
        run.connect(await program.target())
    return {"lines": program.lines}


@operation("free-port")
async def _free_port(run: CaseRun, step: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run.target = f"127.0.0.1:{taken.getsockname()[1]}"


@operation("connect", "ca cert key token")
async def _connect(run: CaseRun, step: dict[str, Any]) -> None:
    tls = None
    if "ca" in step:
        tls = Tls.from_files(step["ca"], step.get("cert"), step.get("key"))
    run.connect(run.target, tls=tls, token=step.get("token"))


@operation("signal", "name")
async def _signal(run: CaseRun, step: dict[str, Any]) -> None:
    assert run.program is not None
    run.program.signal(getattr(signal, step["name"]))


@operation("exit")
async def _exit(run: CaseRun, step: dict[str, Any]) -> Facts:
    assert run.program is not None
    code = await run.program.exit_code()
    return {
        "exit_code": f"none, since it still runs after {EXIT_S:g} s" if code is None else code,
        "has_ended": code is not None,
        "has_failed": code is not None and code > 0,
        "lines": run.program.lines,
        "stderr": run.program.stderr,
    }
