"""Calls to a system: what is asked, what comes of it, and who is told."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from cbench_client.errors import ClientError, RemoteFailure

UNTRACED: Mapping[str, str] = {}
"""The trace context of a call that nobody traces."""


class Work(Protocol):
    """An example to be transformed, of which some fields are withheld."""

    @property
    def example(self) -> Mapping[str, Any]: ...

    @property
    def withheld(self) -> frozenset[str]: ...

    @property
    def instruction(self) -> str:
        """What the dataset asks of whoever answers; may be empty."""
        ...


class ProcessCall(Protocol):
    """One call: its id, and its work."""

    @property
    def call_id(self) -> str: ...

    @property
    def work(self) -> Any:
        """A Work."""
        ...

    @property
    def trace(self) -> Mapping[str, str]:
        """The W3C trace context to tell the system, as metadata has it; may be empty."""
        ...


class WholeCall(NamedTuple):
    """One example, nothing withheld: a call and its work in one."""

    call_id: str
    example: Mapping[str, Any]
    withheld: frozenset[str] = frozenset()
    instruction: str = ""
    trace: Mapping[str, str] = UNTRACED

    @property
    def work(self) -> "WholeCall":
        return self


class ProcessReply(NamedTuple):
    """What a system made of an example; `latency` is in seconds, from sending to arrival."""

    call: Any
    processed: dict[str, Any]
    latency: float
    usage: dict[str, Any] | None
    carried: Sequence[str] = ()
    """Texts of `processed` that are the example's own."""
    handler_seconds: float | None = None
    """What the system's own code took, where its SDK says so."""


Reply = Callable[
    [Any, dict[str, Any], float, dict[str, Any] | None, Sequence[str], float | None], Any
]
"""Makes what those who asked are told: a ProcessReply, or something made of the same parts."""
Answered = Callable[[list[Any]], None]
Failed = Callable[[Any, ClientError], None]
"""Told a call and why there is no reply: `RemoteFailure`, or `Unencodable`."""


class ConversationReply(NamedTuple):
    """What a system said in a conversation, one reply per user turn."""

    replies: list[dict[str, Any]]
    usage: dict[str, Any] | None
    latency: float
    handler_seconds: float | None = None
    """What the system's own code took, where its SDK says so."""


class Asked(NamedTuple):
    """What calls that were started together have in common: whom, how, and who is told."""

    system: str
    timeout: float
    options: Mapping[str, Any] | None
    answered: Answered
    failed: Failed
    reply: Reply


def already_in_flight(call_id: str, target: str) -> RemoteFailure:
    """Say that a call has been made, and is not over."""
    return RemoteFailure(
        f'the call "{call_id}" to {target} is already in flight.',
        origin="daemon",
        reason="ALREADY_EXISTS",
    )
