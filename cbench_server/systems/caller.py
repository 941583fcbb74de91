"""A system as a run sees it: calls go in, and each ends as an answer or as a failure.

A caller is the same over every transport. Its primitive is `start_many`,
which needs no task per call; `call_one` waits for a single one.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from cbench_server.datasets.prompts.prompt import BARE, Asking
from cbench_server.errors import CallFailed
from cbench_server.limits import names_size, text_size
from cbench_server.models.account import Account
from cbench_server.models.tracing import UNTRACED, Span
from cbench_server.types import Example

if TYPE_CHECKING:
    from cbench_server.systems.replicas import Replicas

Turn = dict[str, Any]
T = TypeVar("T")

BUILTIN = "builtin"
INSTALLED = "installed"
"""Where objects are that run in our process: ours, and those that others register."""
PREDICTIONS = "predictions"
CONTROL = "control"
"""Where outputs are that no call makes: in a file, or cut to another system's length."""

_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class SystemDescription:
    """What a system says of itself."""

    name: str
    version: str = ""
    description: str = ""
    max_concurrency: int | None = None
    location: str = ""
    """Where it was found: `builtin`, `installed`, `attached`, `in-process`, a target or a URL."""
    sdk: str = ""
    replicas: tuple[str, ...] = ()
    """The names of its processes, if it has several."""

    @property
    def has_times(self) -> bool:
        """Whether it is called, so that its times are its own: predictions are looked up."""
        return self.location not in (PREDICTIONS, CONTROL)

    @property
    def recorded(self) -> dict[str, Any]:
        """All of it as plain data, its replicas only where it has some."""
        plain = asdict(self)
        if not self.replicas:
            del plain["replicas"]
        return plain

    @property
    def is_on_this_machine(self) -> bool:
        """Whether it takes its time from the same processors as we do, as far as is known."""
        if self.location in (BUILTIN, INSTALLED, "in-process"):
            return True
        address = self.location.rpartition("://")[2]
        return address.startswith(("127.", "localhost", "[::1]", "unix:", "ipv4:127."))


@dataclass(slots=True)
class Process:
    """Work for a system: transform an example, of which some fields are withheld."""

    example: Example
    withheld: frozenset[str] = frozenset()
    asking: Asking = BARE
    """What a model that is asked directly is told with it."""
    instruction: str = ""
    """What a system that answers is told: the task and the form of an answer."""
    is_summary: bool = False
    """Whether a part of the text is an answer, as a summary is, and nobody else gives one."""

    @property
    def visible(self) -> Example:
        """The example as the system may see it."""
        withheld = self.withheld
        return {name: value for name, value in self.example.items() if name not in withheld}


@dataclass(slots=True)
class Reset:
    """Work for a memory system: forget a scope, whether or not it is known."""

    scope: str
    is_last: bool = False
    """Whether nothing more is put there, so that its life ends with it."""
    is_stray: bool = False
    """Whether it was left behind, so that any replica may have it."""


@dataclass(slots=True)
class Ingest:
    """Work for a memory system: remember turns; a call id ingested already adds nothing."""

    scope: str
    turns: list[Turn]


@dataclass(slots=True)
class Query:
    """Work for a memory system: answer from what a scope holds."""

    scope: str
    question: str
    budget: int | None = None
    """The most tokens of remembered text to hand to a model."""
    asked_at: str = ""
    instruction: str = ""
    """What the dataset asks of whoever answers."""


Work = Process | Reset | Ingest | Query


@dataclass(slots=True, eq=False)
class Route:
    """The way of a call among the replicas of a system."""

    at: Any = None
    """The replica that was asked last."""
    moves: int = 0
    """How often another took it over."""
    losses: int = 0
    deaths: int = 0
    """How many replicas have died with it."""
    doubted: Any = None
    """The one that failed it, until another has answered or failed it as well."""
    may_move: bool = False
    """Whether another replica can be asked that has not failed it."""
    is_grave: bool = False
    """Whether one such failure is enough to leave a replica out."""


@dataclass(slots=True, eq=False)
class Call:
    """One attempt at some work. Repeated attempts at the same work have the same id."""

    call_id: str
    work: Work
    account: Account | None = field(default=None, kw_only=True)
    """Pays for what models charge, in a run where they do."""
    span: Span | None = field(default=None, kw_only=True)
    """The latest attempt, in a run that is traced."""
    route: Route | None = field(default=None, kw_only=True)
    """Its way, where the system has replicas."""

    @property
    def replica(self) -> str:
        """The replica that was asked last; empty where there are none."""
        return "" if self.route is None or self.route.at is None else str(self.route.at.name)

    def sent_among(self, calls: int) -> None:
        """Take note how many calls the replica has that is asked, this one included."""

    @property
    def trace(self) -> dict[str, str]:
        """The trace context to tell whoever is called; empty if nobody traces."""
        return UNTRACED if self.span is None else self.span.headers

    @property
    def kept_trace(self) -> str:
        """The trace context for the row; empty if nobody keeps the trace."""
        traceparent = "" if self.span is None else self.span.traceparent
        return traceparent if traceparent and int(traceparent[-2:], 16) & _SAMPLED else ""

    @property
    def told(self) -> dict[str, str | int]:
        """What a trace says of the call beside its id."""
        return {}


@dataclass(slots=True)
class Recall:
    """What a memory system said beside its answer."""

    stored_bytes: int | None = None
    context_tokens: int | None = None
    retrieval_time: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Answer:
    """What came of a call. Of a query, `processed` holds the response, the context, or both."""

    call: Any
    """The Call itself, which may be of a class that knows more."""
    processed: Example
    latency: float
    """Seconds from sending the call to having its answer."""
    usage: dict[str, Any] | None = None
    carried: Sequence[str] = ()
    """Texts of `processed` that are the example's own."""
    handler_seconds: float | None = None
    """What the system's own code took, where that is known."""
    recall: Recall | None = None
    reader_time: float = 0.0
    reader_usage: dict[str, Any] | None = None
    finish_reason: str = ""
    """Why the model stopped, in its server's words."""
    marks: tuple[str, ...] = ()
    """What a reader of the row should know."""
    _measured: Example | None = field(default=None, repr=False, compare=False)
    _own_size: int = field(default=0, repr=False, compare=False)

    @property
    def own_size(self) -> int:
        """The bytes that it takes, about, beyond the example's; many values are walked once."""
        if self._measured is not self.processed:
            self._measured = self.processed
            self._own_size = own_size(self.processed, self.carried)
        return self._own_size


Answered = Callable[[list[Answer]], None]
"""Told of answers that came together, from the event loop. It must not raise."""
Failed = Callable[[Any, CallFailed], None]
"""Told why a call has no answer; the failure says whether another attempt may succeed."""


class Caller(Protocol):
    """One system, over any transport."""

    @property
    def description(self) -> SystemDescription: ...

    @property
    def era(self) -> str:
        """What changes when a memory system may have come back without its memory."""
        ...

    @property
    def capacity(self) -> int | None:
        """The most calls in flight that the way to it carries, where that has a limit."""
        ...

    @property
    def replicas(self) -> "Replicas | None":
        """Its processes, if it has several."""
        ...

    @property
    def ahead(self) -> int:
        """Calls it takes beyond those that may be at work, since it queues them by itself."""
        ...

    def start_many(
        self, calls: Sequence[Call], timeout: float, answered: Answered, failed: Failed
    ) -> None:
        """Make one attempt at each call, and tell of every one how it ended, exactly once.

        Neither function is called before this one returns.
        """
        ...

    def widen(self, calls: int) -> None:
        """Work on at most so many calls at once, of those it queues by itself."""
        ...

    def give_up(self, call: Call) -> None:
        """Forget a call: its end is not told."""
        ...

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the system can be called, at most `timeout` seconds."""
        ...

    async def close(self) -> None:
        """Let go of the system."""
        ...


async def call_one(caller: Caller, call: Call, timeout: float) -> Answer:
    """Make one attempt at one call and wait for it; raises CallFailed."""
    ended = OneEnd[Answer](lambda: caller.give_up(call))
    caller.start_many(
        [call],
        timeout,
        lambda answers: ended.set(answers[0]),
        lambda _, error: ended.set(error),
    )
    return await ended.wait()


class OneEnd(Generic[T]):
    """The end of one call, for a coroutine that waits for it; `give_up` if that is cancelled."""

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._give_up = give_up

    def set(self, outcome: T | CallFailed) -> None:
        """Take how the call ended."""
        if self._future.done():
            return
        if isinstance(outcome, CallFailed):
            self._future.set_exception(outcome)
        else:
            self._future.set_result(outcome)

    async def wait(self) -> T:
        """Return what came of the call, or raise its CallFailed."""
        try:
            return await self._future
        except asyncio.CancelledError:
            self._give_up()
            raise


class CallTasks:
    """Calls that need a coroutine each, such as single requests over a network."""

    def __init__(self) -> None:
        self._tasks: dict[Call, asyncio.Task[None]] = {}

    def start(
        self, call: Call, attempt: Coroutine[Any, Any, Answer], answered: Answered, failed: Failed
    ) -> None:
        """Run an attempt, and tell how it ended."""
        self._tasks[call] = asyncio.create_task(self._run(call, attempt, answered, failed))

    async def _run(
        self, call: Call, attempt: Coroutine[Any, Any, Answer], answered: Answered, failed: Failed
    ) -> None:
        try:
            answer = await attempt
        except CallFailed as error:
            self._tasks.pop(call, None)
            failed(call, error)
        else:
            self._tasks.pop(call, None)
            answered([answer])

    def give_up(self, call: Call) -> bool:
        """Stop an attempt; False if there is none."""
        task = self._tasks.pop(call, None)
        return task is not None and task.cancel()

    def close(self) -> None:
        """Stop all of them."""
        for call in list(self._tasks):
            self.give_up(call)


def texts_carried(processed: Example, original: Example) -> tuple[str, ...]:
    """Name the texts a system passed on as they were."""
    return tuple(
        [
            name
            for name, value in processed.items()
            if isinstance(value, str) and original.get(name) == value
        ]
    )


def own_size(processed: Example, carried: Any) -> int:
    """Estimate the bytes of an output beyond those of the original it passes on."""
    size, rest = names_size(processed), {}
    for name, value in processed.items():
        if name not in carried:
            # Nearly all is text, for which a dict would cost more than the sum.
            if type(value) is str:
                size += len(value)
            else:
                rest[name] = value
    return size + text_size(rest) if rest else size
