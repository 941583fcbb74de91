"""The actor that holds one launched program on a node, and tells what becomes of it."""

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator

import msgspec

from cbench_server.cluster import guard, relay
from cbench_server.cluster.handshake import OtherProtocol, listening_at
from cbench_server.cluster.messages import NO_PLACE, Ended, Listens, Printed, Said, Wanted

_MOST_WAITING = 256
_MAX_LINE = 1 << 16
_LOOK_EVERY_S = 1.0
_ANYWHERE = ("0.0.0.0", "::")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Holder:
    """Starts a program, and ends it with itself.

    Args:
        packed: What is wanted, as JSON.
        launched_at: The node of those who launched it.
    """

    def __init__(self, packed: bytes, launched_at: str) -> None:
        import ray
        from ray.util import get_node_ip_address

        self._wanted = msgspec.json.decode(packed, type=Wanted)
        self._address: str = get_node_ip_address()
        self._here = ray.get_runtime_context().get_node_id() == launched_at
        self._said: asyncio.Queue[Said] = asyncio.Queue(_MOST_WAITING)
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopping = False
        self._agent = os.getppid()

    async def hold(self) -> AsyncIterator[bytes]:
        """Run the program, and tell what it prints, where it listens and how it ends."""
        wanted = self._wanted
        if not await asyncio.to_thread(os.path.isdir, wanted.folder):
            node = socket.gethostname()
            why = f"there is no folder {wanted.folder} on the node {node}"
            yield _packed(Ended(NO_PLACE, why))
            return
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            guard.__file__,
            *wanted.words,
            cwd=wanted.folder,
            env=_environment(wanted),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_MAX_LINE,
        )
        if self._is_stopping:
            await self.stop()
        ending = asyncio.create_task(self._follow(self._process))
        leaving = asyncio.create_task(self._leave_with_the_node())
        while True:
            said = await self._said.get()
            yield _packed(said)
            if isinstance(said, Ended):
                leaving.cancel()
                await ending
                return

    async def stop(self) -> None:
        """Ask the program to end."""
        self._is_stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    async def _leave_with_the_node(self) -> None:
        """End, and the program with it, when the node's agent is gone: nobody else would."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if os.getppid() != self._agent:
                os._exit(1)

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        await asyncio.gather(self._read(process.stdout, 1), self._read(process.stderr, 2))
        await self._said.put(Ended(await process.wait()))

    async def _read(self, pipe: asyncio.StreamReader, stream: int) -> None:
        knows_where = stream != 1
        while part := await _next_part(pipe):
            if not knows_where and (target := _target(part)):
                knows_where = True
                await self._said.put(Listens(self._reachable(target), self._here))
                continue
            await self._said.put(Printed(stream, part))

    def _reachable(self, target: str) -> str:
        """Return where those who launched it reach it."""
        host, _, port = target.rpartition(":")
        if self._here or target.startswith(("unix:", "attached:")):
            return target
        if host.strip("[]") in _ANYWHERE:
            return f"{self._address}:{port}"
        if host.strip("[]") not in _LOOPBACK:
            return target
        server = relay.listen(f"{self._address}:0")
        threading.Thread(target=relay.accept, args=(server, target), daemon=True).start()
        return f"{self._address}:{server.getsockname()[1]}"


async def _next_part(pipe: asyncio.StreamReader) -> bytes:
    """Return the next line, or a piece of one that is very long."""
    try:
        return await pipe.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await pipe.readexactly(error.consumed)


def _target(line: bytes) -> str | None:
    try:
        return listening_at(line.decode("utf-8", "replace"))
    except OtherProtocol:
        # Passed on as it is, so that who launched it can say what is wrong.
        return None


def _environment(wanted: Wanted) -> dict[str, str]:
    """Return the variables of the program: those of the node, without Ray's and its token."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**kept, **wanted.environment}


def _packed(said: Said) -> bytes:
    return msgspec.json.encode(said)
