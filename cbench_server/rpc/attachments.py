"""Processes that dialled in: who they are, and the calls they hold."""

import asyncio
import secrets
from collections import deque

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_server.errors import AlreadyExists, CallFailed, InvalidInput
from cbench_server.results import Failure

_MAX_BATCH_BYTES = 1_000_000


class Attachment:
    """One attached process: calls waiting to be sent, and futures of those sent."""

    def __init__(self, hello: gateway_pb2.Hello) -> None:
        self.id = secrets.token_hex(6)
        self.hello = hello
        self.max_in_flight = max(1, hello.max_in_flight) if hello.HasField("max_in_flight") else 1
        self.is_draining = False
        self._queue: deque[gateway_pb2.Call] = deque()
        self._cancels: list[str] = []
        self._pending: dict[str, asyncio.Future[gateway_pb2.CallResult]] = {}
        self._sent: set[str] = set()
        self._wake = asyncio.Event()
        self._drain_reason: str | None = None
        self._is_closed = False

    async def call(self, call: gateway_pb2.Call) -> gateway_pb2.CallResult:
        """Have a call made and return its result; giving up on it tells the process."""
        if self._is_closed:
            raise CallFailed(_lost())
        if call.call_id in self._pending:
            failure = Failure(
                "daemon", "DUPLICATE_CALL", f"call {call.call_id} is in flight already."
            )
            raise CallFailed(failure)
        future: asyncio.Future[gateway_pb2.CallResult] = asyncio.get_running_loop().create_future()
        self._pending[call.call_id] = future
        self._queue.append(call)
        self._wake.set()
        try:
            return await future
        finally:
            self._pending.pop(call.call_id, None)
            if call.call_id in self._sent:
                self._sent.discard(call.call_id)
                if not future.done() or future.cancelled():
                    self._cancels.append(call.call_id)
            elif call in self._queue:
                self._queue.remove(call)
            self._wake.set()

    def resolve(self, result: gateway_pb2.CallResult) -> None:
        """Take a result; one for a call nobody waits for is ignored."""
        future = self._pending.get(result.call_id)
        if future is not None and not future.done():
            future.set_result(result)

    def drain(self, reason: str) -> None:
        """Tell the process that no more calls come."""
        self._drain_reason = reason
        self.is_draining = True
        self._wake.set()

    async def next_message(self) -> gateway_pb2.AttachResponse | None:
        """Return what is ready to be sent, bounded by bytes; None once the attachment is closed."""
        while True:
            if self._is_closed:
                return None
            message = gateway_pb2.AttachResponse()
            size = 0
            while self._queue and len(self._sent) < self.max_in_flight and size < _MAX_BATCH_BYTES:
                call = self._queue.popleft()
                self._sent.add(call.call_id)
                size += call.ByteSize()
                message.calls.append(call)
            if self._cancels:
                message.cancel_call_ids.extend(self._cancels)
                self._cancels.clear()
            if self._drain_reason is not None:
                message.drain.reason = self._drain_reason
                self._drain_reason = None
            if message.calls or message.cancel_call_ids or message.HasField("drain"):
                return message
            self._wake.clear()
            await self._wake.wait()

    def close(self) -> None:
        """Fail every call that has no result; the runner makes them again."""
        self._is_closed = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(CallFailed(_lost()))
        self._wake.set()


def _lost() -> Failure:
    return Failure("transport", "UNAVAILABLE", "the attached process went away.", retryable=True)


class Attachments:
    """The live attachments, by the names they offer."""

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._live: dict[str, Attachment] = {}
        self._changed = asyncio.Condition()

    @property
    def all(self) -> list[Attachment]:
        """Every live attachment."""
        return list(self._live.values())

    async def add(self, hello: gateway_pb2.Hello) -> Attachment:
        """Take in a process, unless a name it offers is taken."""
        async with self._changed:
            self._check(hello)
            attachment = Attachment(hello)
            self._live[attachment.id] = attachment
            self._changed.notify_all()
        return attachment

    def _check(self, hello: gateway_pb2.Hello) -> None:
        for kind in ("systems", "memory_systems", "evaluators"):
            offered = [info.name for info in getattr(hello, kind)]
            for name in offered:
                if not name or "/" in name or len(name) > 200:
                    raise InvalidInput(f'"{name}" cannot name an attachment; see SystemInfo.name.')
                if offered.count(name) > 1:
                    raise InvalidInput(f'the attachment offers "{name}" twice.')
                if self._find(kind, name) is not None:
                    raise AlreadyExists(
                        f'another live attachment is named "{name}". Stop it, or use another name.'
                    )
        if len(self._live) >= self._limit:
            raise InvalidInput(f"{self._limit} processes are attached, the most this daemon takes.")

    async def remove(self, attachment: Attachment) -> None:
        """Forget a process and fail its calls."""
        async with self._changed:
            self._live.pop(attachment.id, None)
            self._changed.notify_all()
        attachment.close()

    def system(self, name: str) -> Attachment | None:
        """Return the attachment that offers a system and takes calls."""
        return self._find("systems", name)

    def memory_system(self, name: str) -> Attachment | None:
        """Return the attachment that offers a memory system and takes calls."""
        return self._find("memory_systems", name)

    def evaluator(self, name: str) -> Attachment | None:
        """Return the attachment that offers an evaluator and takes calls."""
        return self._find("evaluators", name)

    def _find(self, kind: str, name: str) -> Attachment | None:
        for attachment in self._live.values():
            if attachment.is_draining:
                continue
            if any(info.name == name for info in getattr(attachment.hello, kind)):
                return attachment
        return None

    async def wait_for_system(self, name: str, timeout: float, kind: str = "systems") -> bool:
        """Wait until a system, or one of `memory_systems`, is attached."""
        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait_for(lambda: self._find(kind, name) is not None)
        except TimeoutError:
            return False
        return True

    def drain(self, reason: str) -> None:
        """Tell every process that no more calls come."""
        for attachment in self._live.values():
            attachment.drain(reason)
