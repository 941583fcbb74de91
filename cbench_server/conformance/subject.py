"""The process under test, shared by the cases of a run, and what it says about itself."""

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from cbench_client._gen.cbench.v1 import evaluator_pb2, memory_pb2, system_pb2
from cbench_client.remote.channel import Tls, open_channel
from cbench_server.conformance.cases import Case
from cbench_server.conformance.certificates import make_certificates
from cbench_server.conformance.gateway import Gateway, Session
from cbench_server.conformance.program import Program

SERVICES: dict[str, tuple[str, Any]] = {
    "system": ("cbench.v1.System", system_pb2.SystemDescribeResponse),
    "memory": ("cbench.v1.MemorySystem", memory_pb2.MemorySystemDescribeResponse),
    "evaluator": ("cbench.v1.Evaluator", evaluator_pb2.EvaluatorDescribeResponse),
}
_PROBE = "conformance-probe"
_HEALTH = "/grpc.health.v1.Health/Check"
_DESCRIBE_S = 20.0


class Unusable(Exception):
    """There is nothing to test at the target."""


class Subject:
    """The process under test: at a target, or started by a command and ended on exit."""

    def __init__(
        self,
        *,
        target: str = "",
        command: Sequence[str] = (),
        tls: Tls | bool | None = None,
        token: str | None = None,
    ) -> None:
        self.target, self.command = target, tuple(command)
        self.tls, self.token = tls, token
        self.infos: dict[str, list[Any]] = {}
        self.sdk = ""
        self.has_health = False
        self.channel: Any = None
        self._stack = AsyncExitStack()
        self._folder: Path | None = None
        self._attached: Session | None = None
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> "Subject":
        try:
            if self.command:
                program = Program(self.command)
                self._stack.push_async_callback(program.end)
                await program.start()
                self.target = await program.target()
            self.channel = open_channel(self.target, tls=self.tls, token=self.token)
            self._stack.push_async_callback(self.channel.close)
            await self._ask()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    async def _ask(self) -> None:
        trouble = ""
        for area, (service, message) in SERVICES.items():
            describe = self.channel.unary_unary(f"/{service}/Describe")
            try:
                # A process that has just been started may not listen yet.
                answer = message.FromString(
                    await describe(b"", timeout=_DESCRIBE_S, wait_for_ready=not trouble)
                )
            except grpc.aio.AioRpcError as error:
                trouble = f"{error.code().name}: {error.details()}"
                continue
            self.infos[area] = list(getattr(answer, "evaluators", None) or answer.systems)
            self.sdk = answer.sdk
        if not any(self.infos.values()):
            raise Unusable(
                f"{self.target} serves no system, memory system or evaluator ({trouble})."
            )
        try:
            await self.channel.unary_unary(_HEALTH)(b"", timeout=_DESCRIBE_S)
            self.has_health = True
        except grpc.aio.AioRpcError as error:
            self.has_health = error.code() is not grpc.StatusCode.UNIMPLEMENTED

    @property
    def is_program(self) -> bool:
        """Whether the conformance program is under test, rather than another program."""
        return any(info.name == _PROBE for info in self.infos.get("system", ()))

    def name_of(self, area: str) -> str:
        """Return the name of the first thing of a kind that is served."""
        infos = self.infos.get(area) or [None]
        return getattr(infos[0], "name", "")

    def lacks(self, case: Case) -> str:
        """Return why a case cannot run here; empty if it can."""
        if case.area in SERVICES and not self.infos.get(case.area):
            return f"no {case.area} is served"
        if "program" in case.needs and not self.is_program:
            return "needs the conformance program"
        if "command" in case.needs and not self.command:
            return "needs a command to start it"
        if "openssl" in case.needs and shutil.which("openssl") is None:
            return "needs openssl"
        if "health" in case.needs and not (self.is_program or self.has_health):
            return "no health service"
        if "stream" in case.needs and not (self.is_program or self._streams(case)):
            return "no stream is announced"
        return ""

    def _streams(self, case: Case) -> bool:
        info = self.infos[case.area][0]
        stream = system_pb2.CAPABILITY_STREAM
        return case.area == "evaluator" or stream in info.capabilities

    async def attached(self) -> Session:
        """Return the attachment that cases share; made when first asked for."""
        async with self._lock:
            if self._attached is None or self._attached.ended.is_set():
                gateway = Gateway()
                await gateway.start()
                self._stack.push_async_callback(gateway.stop)
                program = Program(self.command)
                self._stack.push_async_callback(program.end)
                await program.start("--attach", gateway.target)
                self._attached = await program.while_running(gateway.next_session())
            return self._attached

    async def certificates(self) -> Path:
        """Return the folder with certificates; made when first asked for."""
        async with self._lock:
            if self._folder is None:
                folder = self._stack.enter_context(tempfile.TemporaryDirectory())
                await make_certificates(Path(folder))
                self._folder = Path(folder)
            return self._folder
