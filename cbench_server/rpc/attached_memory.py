"""Attached memory systems, as the runner sees them."""

import time
from dataclasses import replace

from cbench_client import convert as wire
from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_client.errors import Unencodable
from cbench_server.errors import CallFailed, SystemUnreachable, UnknownName
from cbench_server.results import Failure
from cbench_server.rpc import memory_messages as messages
from cbench_server.rpc.attached import ask, undecodable
from cbench_server.rpc.attachments import Attachments
from cbench_server.rpc.convert import description_from_info
from cbench_server.rpc.remote_caller import call_failed
from cbench_server.systems.caller import SystemDescription
from cbench_server.systems.memory_caller import IngestReply, QueryReply, Question, Turn

_KIND = "memory_systems"


def attached_memory(attachments: Attachments, name: str) -> "AttachedMemoryCaller":
    """Find a memory system among the attachments."""
    attachment = attachments.memory_system(name)
    if attachment is None:
        known = [info.name for entry in attachments.all for info in entry.hello.memory_systems]
        raise SystemUnreachable(str(UnknownName("attached memory system", name, known)))
    info = next(info for info in attachment.hello.memory_systems if info.name == name)
    description = description_from_info(info, "attached", attachment.hello.sdk)
    width = min(description.max_concurrency or attachment.max_in_flight, attachment.max_in_flight)
    return AttachedMemoryCaller(attachments, replace(description, max_concurrency=width))


class AttachedMemoryCaller:
    """Calls a memory system through whatever attachment offers it at the time."""

    def __init__(self, attachments: Attachments, description: SystemDescription) -> None:
        self.description = description
        self._attachments = attachments
        self._name = description.name

    @property
    def era(self) -> str:
        """The attachment: another one may be another process."""
        attachment = self._attachments.memory_system(self._name)
        return attachment.id if attachment is not None else ""

    async def reset(self, scope: str, *, call_id: str, timeout: float) -> None:
        """Make one attempt."""
        request = messages.reset_request(self._name, scope)
        await self._call(gateway_pb2.Call(call_id=call_id, reset=request), "reset", timeout)

    async def ingest(
        self, scope: str, turns: list[Turn], *, call_id: str, timeout: float
    ) -> IngestReply:
        """Make one attempt."""
        request = messages.ingest_request(self._name, scope, turns, call_id)
        started = time.monotonic()
        call = gateway_pb2.Call(call_id=call_id, ingest=request)
        result = await self._call(call, "ingest", timeout)
        return messages.ingest_reply(result.ingest, time.monotonic() - started)

    async def query(
        self, scope: str, question: Question, *, call_id: str, timeout: float
    ) -> QueryReply:
        """Make one attempt."""
        request = messages.query_request(self._name, scope, question, call_id)
        started = time.monotonic()
        call = gateway_pb2.Call(call_id=call_id, query=request)
        result = await self._call(call, "query", timeout)
        try:
            return messages.query_reply(result.query, time.monotonic() - started)
        except Unencodable as error:
            raise undecodable(self._name, f"what cannot be decoded: {error}") from error

    async def wait_connected(self, timeout: float) -> bool:
        """Wait until the system is attached."""
        return await self._attachments.wait_for_system(self._name, timeout, _KIND)

    async def close(self) -> None:
        """Nothing to let go of: the attachment is the process's own."""

    async def _call(
        self, call: gateway_pb2.Call, kind: str, timeout: float
    ) -> gateway_pb2.CallResult:
        attachment = self._attachments.memory_system(self._name)
        if attachment is None:
            message = f'memory system "{self._name}" is not attached.'
            raise CallFailed(Failure("transport", "UNAVAILABLE", message, retryable=True))
        result = await ask(attachment, call, timeout)
        found = result.WhichOneof("result")
        if found == "failure":
            raise call_failed(wire.failure_from_proto(result.failure))
        if found != kind:
            raise undecodable(self._name, f'a result of kind "{found}"')
        return result
