"""Systems in other processes, dialled by the daemon."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from cbench_client.errors import ClientError, RemoteFailure, Unencodable
from cbench_client.remote.connection import SystemConnection
from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.systems.caller import (
    Answer,
    Answered,
    Call,
    CallTasks,
    Failed,
    Process,
    SystemDescription,
    texts_carried,
)
from cbench_server.types import Example


class RemoteCaller:
    """Calls one system over its own connection."""

    era = ""
    ahead = 0
    capacity: int | None = None
    replicas = None

    def __init__(
        self,
        connection: SystemConnection,
        served_name: str,
        description: SystemDescription,
        *,
        converses: bool,
        options: Mapping[str, Any],
    ) -> None:
        self.description = description
        self._connection = connection
        self._served_name = served_name
        self._converses = converses
        self._options = options
        self._talks = CallTasks()
        # On a stream again, one example that breaks it would take the same others down each time.
        self._once_lost: set[str] = set()

    def start_many(
        self, calls: Sequence[Call], timeout: float, answered: Answered, failed: Failed
    ) -> None:
        """See Caller."""
        together: Sequence[Call] = calls
        alone: list[Call] = []
        if self._converses:
            together = self._start_talks(calls, timeout, answered, failed)
        if lost := self._once_lost:
            alone = [call for call in together if call.call_id in lost]
            together = [call for call in together if call.call_id not in lost]
            lost.difference_update([call.call_id for call in alone])
        for chosen, is_alone in ((together, False), (alone, True)):
            if chosen:
                self._connection.start_many(
                    self._served_name,
                    chosen,
                    timeout=timeout,
                    answered=answered,
                    failed=partial(self._failed, failed),
                    options=self._options,
                    alone=is_alone,
                    reply=Answer,
                )

    def _start_talks(
        self, calls: Sequence[Call], timeout: float, answered: Answered, failed: Failed
    ) -> list[Call]:
        """Hold the conversations among the calls, and return the others."""
        others = []
        for call in calls:
            work: Any = call.work
            if holds_conversation(work.example):
                self._talks.start(call, self._converse(call, work, timeout), answered, failed)
            else:
                others.append(call)
        return others

    def _failed(self, failed: Failed, call: Call, error: ClientError) -> None:
        if isinstance(error, RemoteFailure) and error.retryable:
            self._once_lost.add(call.call_id)
        failed(call, call_failed(error))

    async def _converse(self, call: Call, work: Process, timeout: float) -> Answer:
        visible = work.visible
        try:
            reply = await self._connection.converse(
                self._served_name,
                visible,
                visible["turns"],
                call_id=call.call_id,
                timeout=timeout,
                options=self._options,
                instruction=work.instruction,
                trace=call.trace,
            )
        except (RemoteFailure, Unencodable) as error:
            raise call_failed(error) from error
        processed = with_replies(visible, reply.replies)
        carried = texts_carried(processed, work.example)
        return Answer(call, processed, reply.latency, reply.usage, carried, reply.handler_seconds)

    def widen(self, calls: int) -> None:
        """Do nothing: it queues no calls by itself."""

    def give_up(self, call: Call) -> None:
        """See Caller."""
        if not self._talks.give_up(call):
            self._connection.give_up(call.call_id)

    @property
    def is_connected(self) -> bool:
        """Whether the connection stands."""
        return self._connection.is_connected

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the process is there and willing."""
        return await self._connection.wait_connected(timeout)

    async def close(self) -> None:
        """Close the connection."""
        self._talks.close()
        await self._connection.close()


def holds_conversation(example: Example) -> bool:
    """Whether an example is to be held as a conversation, where the system can."""
    return bool(example.get("multi_turn")) and isinstance(example.get("turns"), list)


def with_replies(example: Example, replies: list[dict[str, Any]]) -> Example:
    """Add a system's side of the conversation to the example."""
    contents = [reply.get("content", "") for reply in replies]
    return {**example, "response": contents[-1] if contents else "", "turn_responses": contents}


def call_failed(error: ClientError) -> CallFailed:
    """Make what a connection says the run's own failure."""
    if not isinstance(error, RemoteFailure):
        return CallFailed(Failure("dataset", error.reason, str(error)))
    failure = Failure(
        origin=error.origin,
        reason=error.reason,
        message=str(error),
        attempts=error.attempts,
        retryable=error.retryable,
        stack_trace=error.stack_trace,
    )
    return CallFailed(failure, error.retry_delay)
