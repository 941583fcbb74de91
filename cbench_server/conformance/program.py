"""A program under test: its start, the handshake on its stdout, signals and its end."""

import asyncio
import os
import re
import signal
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from cbench_server.cluster import groups

T = TypeVar("T")

HANDSHAKE_S = 60.0
EXIT_S = 15.0
_HANDSHAKE = re.compile(r"cbench\|1\|(tcp|unix)\|(\S+)")
_KEPT = 4_000


class ProgramFailed(Exception):
    """The program did not start as it should."""


class Program:
    """One process in a separate process group, so that its children end with it."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = list(command)
        self.lines: list[str] = []
        self.stderr = ""
        self._process: asyncio.subprocess.Process | None = None
        self._address: re.Match[str] | None = None
        self._announced = asyncio.Event()
        self._readers: list[asyncio.Task[None]] = []

    async def start(self, *flags: str, is_asked: bool = True) -> None:
        """Start it; `is_asked` requests a handshake through its environment."""
        environment = {**os.environ}
        environment.pop("CBENCH_HANDSHAKE", None)
        if is_asked:
            environment["CBENCH_HANDSHAKE"] = "1"
        groups.prepare()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(*self.command, *flags),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            raise ProgramFailed(f"cannot start {self.command[0]}: {error.strerror}.") from error
        groups.end_with_us(self._process.pid)
        self._readers = [
            asyncio.create_task(self._read_stdout()),
            asyncio.create_task(self._read_stderr()),
        ]

    async def target(self) -> str:
        """Wait for the handshake and return where the program listens."""
        try:
            await asyncio.wait_for(self._announced.wait(), HANDSHAKE_S)
        except TimeoutError:
            raise ProgramFailed(f"no handshake on stdout within {HANDSHAKE_S:g} s.") from None
        if self._address is None:
            said = f'said "{self.lines[-1][:200]}" and ended' if self.lines else "ended"
            raise ProgramFailed(
                f"`{' '.join(self.command)}` {said} before the line cbench|1|tcp|HOST:PORT. "
                f"Its stderr: {self.stderr.strip()[-500:]}"
            )
        return self._address[2] if self._address[1] == "tcp" else f"unix:{self._address[2]}"

    async def while_running(self, wanted: Coroutine[Any, Any, T]) -> T:
        """Wait for something the program should do. Raises `ProgramFailed` if it ends instead."""
        assert self._process is not None
        doing = asyncio.create_task(wanted)
        ending = asyncio.create_task(self._process.wait())
        try:
            await asyncio.wait({doing, ending}, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
        finally:
            doing.cancel()
            ending.cancel()
        await asyncio.wait(self._readers, timeout=1.0)
        words = self.stderr.strip()[-500:]
        raise ProgramFailed(f"it ended with exit code {self._process.returncode}: {words}")

    def signal(self, number: int) -> None:
        """Send a signal to the process itself, as a supervisor does."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def exit_code(self) -> int | None:
        """Wait for the end; None if it does not come in time."""
        assert self._process is not None
        try:
            code = await asyncio.wait_for(self._process.wait(), EXIT_S)
        except TimeoutError:
            return None
        # A child it has left behind may hold the pipes open.
        await asyncio.wait(self._readers, timeout=1.0)
        return code

    async def end(self) -> None:
        """Kill it with all it has started."""
        if self._process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        groups.has_ended(self._process.pid)
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def _read_stdout(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            text = line.decode(errors="replace").strip()
            if len(self.lines) < 100:
                self.lines.append(text)
            # Lines before it are skipped, as `--launch` does.
            if self._address is None and (found := _HANDSHAKE.fullmatch(text)):
                self._address = found
                self._announced.set()
        self._announced.set()

    async def _read_stderr(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while part := await self._process.stderr.read(65_536):
            self.stderr = (self.stderr + part.decode(errors="replace"))[-_KEPT:]
