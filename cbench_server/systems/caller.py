"""A system as the runner sees it: something that answers one call, or says why not."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from cbench_server.types import Example


@dataclass(frozen=True, slots=True)
class SystemDescription:
    """What a system says of itself."""

    name: str
    version: str = ""
    description: str = ""
    max_concurrency: int | None = None
    location: str = ""
    """Where it was found: `builtin`, `attached`, `in-process`, a target or a URL."""
    sdk: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a system made of one example."""

    processed: Example
    latency: float
    """Seconds from sending the call to having its answer."""
    usage: dict[str, Any] | None = None
    reader_time: float = 0.0
    reader_usage: dict[str, Any] | None = None


class Caller(Protocol):
    """One system, whatever the transport."""

    @property
    def description(self) -> SystemDescription: ...

    async def call(self, example: Example, *, call_id: str, timeout: float) -> Reply:
        """Make one attempt; raise CallFailed, whose failure says whether another may succeed."""
        ...

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the system can be called, at most `timeout` seconds."""
        ...

    async def close(self) -> None:
        """Let go of the system."""
        ...


class RenamedCaller:
    """A system under another name, such as the same one twice with other options."""

    def __init__(self, caller: Caller, name: str) -> None:
        self._caller = caller
        self._description = replace(caller.description, name=name)

    @property
    def description(self) -> SystemDescription:
        return self._description

    async def call(self, example: Example, *, call_id: str, timeout: float) -> Reply:
        return await self._caller.call(example, call_id=call_id, timeout=timeout)

    async def wait_connected(self, timeout: float) -> bool:
        return await self._caller.wait_connected(timeout)

    async def close(self) -> None:
        await self._caller.close()
