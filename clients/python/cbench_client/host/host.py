"""A user's objects, held by name and called within their limits.

What `serve` and `attach` share: both take calls off a wire, hand them to a
`Host`, and put the outcomes back. Everything here runs on one event loop.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.message import Message

from cbench_client._gen.cbench.v1 import (
    evaluator_pb2,
    gateway_pb2,
    memory_pb2,
    system_pb2,
)
from cbench_client.errors import NotServable, RemoteFailure
from cbench_client.host.adapters import EvaluatorAdapter, SystemAdapter
from cbench_client.host.calls import UNTRACED, CurrentCall, Done, Job, Trace
from cbench_client.host.limits import Adapter, Offer
from cbench_client.host.memory import MemoryAdapter
from cbench_client.host.offers import offers

SDK = "cbench-python/0.1.0"

RESPONSES: dict[str, Callable[[], Message]] = {
    "process": system_pb2.ProcessResponse,
    "converse": system_pb2.ProcessConversationResponse,
    "score": evaluator_pb2.ScoreResponse,
    "reset": memory_pb2.ResetResponse,
    "ingest": memory_pb2.IngestResponse,
    "query": memory_pb2.QueryResponse,
}


class Host:
    """The objects offered, by name.

    Names are unique among systems, among memory systems and among evaluators.
    """

    def __init__(
        self,
        systems: Iterable[Any] = (),
        memory_systems: Iterable[Any] = (),
        evaluators: Iterable[Any] = (),
        max_concurrency: int | None = None,
    ) -> None:
        self.is_draining = False
        self._systems = [SystemAdapter(item, max_concurrency) for item in systems]
        self._memory = [MemoryAdapter(item, max_concurrency) for item in memory_systems]
        self._evaluators = [EvaluatorAdapter(item, max_concurrency) for item in evaluators]
        by_kind = {
            ("process", "converse"): ("system", _by_name(self._systems, "system")),
            ("reset", "ingest", "query"): ("system", _by_name(self._memory, "memory system")),
            ("score",): ("evaluator", _by_name(self._evaluators, "evaluator")),
        }
        self._all: list[Adapter] = [*self._systems, *self._memory, *self._evaluators]
        self._offers = {kind: offer for kinds, offer in by_kind.items() for kind in kinds}
        if not any(by_name for _, by_name in by_kind.values()):
            raise NotServable("there is nothing to serve; pass at least one system or evaluator.")

    @property
    def total_limit(self) -> int:
        """How many calls may run at once over all that is offered."""
        return sum(item.limit for item in self._all)

    @property
    def names(self) -> list[str]:
        """The names of all that is offered."""
        return [item.name for item in self._all]

    def describe_systems(self) -> system_pb2.SystemDescribeResponse:
        """Answer `System.Describe`; empty if no system is served."""
        return system_pb2.SystemDescribeResponse(systems=[s.info for s in self._systems], sdk=SDK)

    def describe_memory(self) -> memory_pb2.MemorySystemDescribeResponse:
        """Answer `MemorySystem.Describe`; empty if none is served."""
        infos = [item.info for item in self._memory]
        return memory_pb2.MemorySystemDescribeResponse(systems=infos, sdk=SDK)

    def describe_evaluators(self) -> evaluator_pb2.EvaluatorDescribeResponse:
        """Answer `Evaluator.Describe`; empty if none is served."""
        infos = [item.info for item in self._evaluators]
        return evaluator_pb2.EvaluatorDescribeResponse(evaluators=infos, sdk=SDK)

    def hello(self, max_in_flight: int) -> gateway_pb2.Hello:
        """Say the same to a daemon dialled by `attach`."""
        return gateway_pb2.Hello(
            systems=[item.info for item in self._systems],
            memory_systems=[item.info for item in self._memory],
            evaluators=[item.info for item in self._evaluators],
            sdk=SDK,
            max_in_flight=max_in_flight,
        )

    def find(self, kind: str, request: Any) -> Offer:
        """Return whom a request is for. Raises `RemoteFailure` if that is unclear."""
        noun, by_name = self._offers[kind]
        name = request.evaluator if kind == "score" else request.system
        offer = by_name.get(name)
        if offer is None and not name and len(by_name) == 1:
            offer = next(iter(by_name.values()))
        if offer is not None:
            return offer
        served = ", ".join(by_name) or "none"
        if not name and by_name:
            raise RemoteFailure(
                f"several are served here; name the {noun}. Served: {served}",
                origin=noun,
                reason="INVALID_ARGUMENT",
            )
        raise RemoteFailure(
            f'no {noun} "{name}" is served here. Served: {served}',
            origin=noun,
            reason=f"UNKNOWN_{noun.upper()}",
        )

    def submit(
        self, kind: str, request: Any, reply: Message, call: CurrentCall, on_done: Done
    ) -> Job:
        """Start one call. Raises `RemoteFailure` for one that is refused."""
        if self.is_draining:
            raise RemoteFailure("shutting down", reason="UNAVAILABLE", retryable=True)
        job = Job(request, reply, call, on_done)
        self.find(kind, request).submit(kind, job)
        return job

    async def run(
        self, kind: str, request: Any, timeout: float | None, trace: Trace = UNTRACED
    ) -> Message:
        """Make one call and wait for it. Raises `RemoteFailure` if it gives no result."""
        future: asyncio.Future[RemoteFailure | None] = asyncio.get_running_loop().create_future()

        def done(job: Job, failure: RemoteFailure | None) -> None:
            if not future.done():
                future.set_result(failure)

        call = CurrentCall(getattr(request, "call_id", ""), timeout, trace)
        job = self.submit(kind, request, RESPONSES[kind](), call, done)
        try:
            failure = await future
        except asyncio.CancelledError:
            job.cancel()
            raise
        if failure is not None:
            raise failure
        return job.reply

    def close(self) -> None:
        """Stop waiting for user code."""
        for _, by_name in self._offers.values():
            for offer in by_name.values():
                offer.close()


def _by_name(adapters: Iterable[Adapter], noun: str) -> dict[str, Offer]:
    by_name: dict[str, Offer] = {}
    for adapter in adapters:
        if adapter.name in by_name:
            raise NotServable(f'two {noun}s are called "{adapter.name}"; names must differ.')
        by_name[adapter.name] = Offer(adapter)
    return by_name


class _Function:
    """A plain function as a system."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = function.__name__
        self.description = (function.__doc__ or "").strip()
        self.process = function


def _shown(item: Any) -> str:
    """Name the kind of an object, with its article."""
    kind = type(item).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def host_for(
    offered: Any,
    memory_systems: Iterable[Any] = (),
    evaluators: Iterable[Any] = (),
    max_concurrency: int | None = None,
) -> Host:
    """Build a host from one object or several of any kind, told apart by their methods."""
    systems, memories, scorers = [], list(memory_systems), list(evaluators)
    for item in offered if isinstance(offered, list | tuple) else [offered]:
        if offers(item, "query") and offers(item, "ingest"):
            memories.append(item)
        elif inspect.isclass(item):
            raise NotServable(f"{item.__name__} is a class; pass an object: {item.__name__}().")
        elif offers(item, "process"):
            systems.append(item)
        elif offers(item, "score") or offers(item, "assess"):
            scorers.append(item)
        elif inspect.isroutine(item):
            systems.append(_Function(item))
        else:
            raise NotServable(
                f"{_shown(item)} cannot be served: it has neither process, nor ingest and query, "
                "nor score."
            )
    return Host(systems, memories, scorers, max_concurrency)
