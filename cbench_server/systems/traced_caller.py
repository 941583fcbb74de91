"""A caller whose calls are traced: each batch is a span, and each call in it one of its own."""

from collections.abc import Sequence

from cbench_server.errors import CallFailed
from cbench_server.models.tracing import Span
from cbench_server.systems.caller import Answer, Answered, Call, Caller, Failed, SystemDescription
from cbench_server.systems.replicas import Replicas


class _Batch:
    """A batch under way, which ends with the last of its calls."""

    __slots__ = ("left", "span")

    def __init__(self, span: Span, calls: int) -> None:
        self.span = span
        self.left = calls

    def one_ended(self) -> None:
        self.left -= 1
        if not self.left:
            self.span.end()


class TracedCaller:
    """Does what another caller does, and tells the trace of a run."""

    def __init__(self, caller: Caller, run: Span) -> None:
        self._caller = caller
        self._run = run
        self._under_way: dict[Call, _Batch] = {}

    @property
    def description(self) -> SystemDescription:
        """See Caller."""
        return self._caller.description

    @property
    def era(self) -> str:
        """See Caller."""
        return self._caller.era

    @property
    def capacity(self) -> int | None:
        """See Caller."""
        return self._caller.capacity

    @property
    def replicas(self) -> Replicas | None:
        """See Caller."""
        return self._caller.replicas

    @property
    def ahead(self) -> int:
        """See Caller."""
        return self._caller.ahead

    def start_many(
        self, calls: Sequence[Call], timeout: float, answered: Answered, failed: Failed
    ) -> None:
        """See Caller."""
        system = self.description.name
        attributes: dict[str, str | int] = {"cbench.system": system, "cbench.calls": len(calls)}
        batch = _Batch(self._run.child("batch", attributes), len(calls))
        for call in calls:
            about: dict[str, str | int] = {
                "cbench.system": system,
                "cbench.call_id": call.call_id,
                **call.told,
            }
            name = type(call.work).__name__.lower()
            call.span = batch.span.child(name, about, calls=True)
            self._under_way[call] = batch

        def have_answered(answers: list[Answer]) -> None:
            for answer in answers:
                self._end(answer.call, handler=answer.handler_seconds)
            answered(answers)

        def has_failed(call: Call, error: CallFailed) -> None:
            self._end(call, error.failure.reason)
            failed(call, error)

        self._caller.start_many(calls, timeout, have_answered, has_failed)

    def _end(self, call: Call, failure: str = "", handler: float | None = None) -> None:
        batch = self._under_way.pop(call, None)
        if batch is None or call.span is None:
            return
        if handler is not None:
            call.span.note(**{"cbench.handler_seconds": handler})
        call.span.end(failure)
        batch.one_ended()

    def widen(self, calls: int) -> None:
        """See Caller."""
        self._caller.widen(calls)

    def give_up(self, call: Call) -> None:
        """See Caller."""
        self._end(call, "CANCELLED")
        self._caller.give_up(call)

    async def wait_connected(self, timeout: float) -> bool:
        """See Caller."""
        return await self._caller.wait_connected(timeout)

    async def close(self) -> None:
        """See Caller."""
        for call in list(self._under_way):
            self._end(call, "CANCELLED")
        await self._caller.close()
