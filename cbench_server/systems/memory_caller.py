"""A memory system as the runner sees it: scopes that are reset, fed and asked."""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from cbench_server.systems.caller import SystemDescription

Turn = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """What a memory system is told when it is asked, and nothing else."""

    text: str
    budget: int | None = None
    """The most tokens of remembered text to hand to a model."""
    asked_at: str = ""


@dataclass(frozen=True, slots=True)
class IngestReply:
    """What remembering some turns cost; times are in seconds."""

    latency: float
    stored_bytes: int | None = None
    usage: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class QueryReply:
    """What a memory system answered; times are in seconds."""

    latency: float
    response: str | None = None
    """None where the system only retrieves."""
    context: str | None = None
    context_tokens: int | None = None
    stored_bytes: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    retrieval_time: float | None = None
    reader_time: float = 0.0
    reader_usage: dict[str, Any] | None = None


@runtime_checkable
class MemoryCaller(Protocol):
    """One memory system, whatever the transport. Scopes do not see each other.

    Each method makes one attempt and raises CallFailed, whose failure says
    whether another may succeed.
    """

    @property
    def description(self) -> SystemDescription: ...

    @property
    def era(self) -> str:
        """What changes when the system may have come back without its memory."""
        ...

    async def reset(self, scope: str, *, call_id: str, timeout: float) -> None:
        """Forget a scope, whether or not it is known."""
        ...

    async def ingest(
        self, scope: str, turns: list[Turn], *, call_id: str, timeout: float
    ) -> IngestReply:
        """Remember turns; a call id that was ingested already adds nothing."""
        ...

    async def query(
        self, scope: str, question: Question, *, call_id: str, timeout: float
    ) -> QueryReply:
        """Answer from what a scope holds."""
        ...

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the system can be called, at most `timeout` seconds."""
        ...

    async def close(self) -> None:
        """Let go of the system."""
        ...


class RenamedMemoryCaller:
    """A memory system under another name."""

    def __init__(self, caller: MemoryCaller, name: str) -> None:
        self._caller = caller
        self._description = replace(caller.description, name=name)
        self.reset = caller.reset
        self.ingest = caller.ingest
        self.query = caller.query
        self.wait_connected = caller.wait_connected
        self.close = caller.close

    @property
    def description(self) -> SystemDescription:
        return self._description

    @property
    def era(self) -> str:
        return self._caller.era
