"""A system in another process, dialled by the daemon."""

from collections.abc import Callable, Mapping
from typing import Any

from cbench_client.connection import ProcessReply, SystemConnection
from cbench_client.errors import RemoteFailure, Unencodable
from cbench_server.errors import CallFailed
from cbench_server.results import Failure
from cbench_server.systems.caller import Reply, SystemDescription
from cbench_server.types import Example


class RemoteCaller:
    """Calls one system over a connection of its own."""

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
        self._once_lost: set[str] = set()

    async def call(self, example: Example, *, call_id: str, timeout: float) -> Reply:
        """Make one attempt."""
        try:
            if self._converses and holds_conversation(example):
                return await self._converse(example, call_id, timeout)
            return await self._process(example, call_id, timeout)
        except RemoteFailure as error:
            if error.retryable:
                self._once_lost.add(call_id)
            raise call_failed(error) from error
        except Unencodable as error:
            raise CallFailed(Failure("dataset", error.reason, str(error))) from error

    def start(
        self,
        example: Example,
        *,
        call_id: str,
        timeout: float,
        done: Callable[[Reply | CallFailed | None], None],
    ) -> bool:
        """Start an attempt that needs no waiting, and tell `done` what came of it.

        False means that this call has to be made with `call`; so does a `done` of None.
        """
        if call_id in self._once_lost or (self._converses and holds_conversation(example)):
            return False

        def ended(reply: ProcessReply | RemoteFailure | None) -> None:
            if isinstance(reply, RemoteFailure):
                if reply.retryable:
                    self._once_lost.add(call_id)
                done(call_failed(reply))
            else:
                done(reply and Reply(reply.processed, reply.latency, reply.usage))

        return self._connection.start(
            self._served_name,
            example,
            call_id=call_id,
            timeout=timeout,
            options=self._options,
            done=ended,
        )

    def give_up(self, call_id: str) -> None:
        """Forget a call that was started; its `done` is not called."""
        self._connection.give_up(call_id)

    async def _process(self, example: Example, call_id: str, timeout: float) -> Reply:
        # On a stream again, one example that breaks it would take the same others down each time.
        alone = call_id in self._once_lost
        self._once_lost.discard(call_id)
        reply = await self._connection.process(
            self._served_name,
            example,
            call_id=call_id,
            timeout=timeout,
            options=self._options,
            alone=alone,
        )
        return Reply(reply.processed, reply.latency, reply.usage)

    async def _converse(self, example: Example, call_id: str, timeout: float) -> Reply:
        reply = await self._connection.converse(
            self._served_name,
            example,
            example["turns"],
            call_id=call_id,
            timeout=timeout,
            options=self._options,
        )
        return Reply(with_replies(example, reply.replies), reply.latency, reply.usage)

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the process is there and willing."""
        return await self._connection.wait_connected(timeout)

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()


def holds_conversation(example: Example) -> bool:
    """Whether an example is to be held as a conversation, where the system can."""
    return bool(example.get("multi_turn")) and isinstance(example.get("turns"), list)


def with_replies(example: Example, replies: list[dict[str, Any]]) -> Example:
    """Add a system's side of the conversation to the example."""
    contents = [reply.get("content", "") for reply in replies]
    return {**example, "response": contents[-1] if contents else "", "turn_responses": contents}


def call_failed(error: RemoteFailure) -> CallFailed:
    """Make a remote failure the runner's."""
    failure = Failure(
        origin=error.origin,
        reason=error.reason,
        message=str(error),
        attempts=error.attempts,
        retryable=error.retryable,
        stack_trace=error.stack_trace,
    )
    return CallFailed(failure, error.retry_delay)
