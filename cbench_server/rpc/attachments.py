"""Processes that dialled in: who they are, and the calls they hold."""

import asyncio
import secrets
from typing import Any

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_client.remote.call_stream import CallStream, Sink
from cbench_server.errors import AlreadyExists, CallFailed, InvalidInput
from cbench_server.limits import MAX_ATTACHED, MAX_OFFERED
from cbench_server.results import Failure
from cbench_server.rpc.attached_pulse import AttachedPulse

_KINDS = ("systems", "memory_systems", "evaluators")


class Attachment:
    """One attached process, and the calls over its stream."""

    def __init__(self, hello: gateway_pb2.Hello) -> None:
        self.id = secrets.token_hex(6)
        self.hello = hello
        self.max_in_flight = max(1, hello.max_in_flight) if hello.HasField("max_in_flight") else 1
        self.is_draining = False
        self._calls = CallStream(
            lambda ids: gateway_pb2.AttachResponse(cancel_call_ids=ids).SerializeToString(),
            lambda token: CallFailed(
                Failure("system", "DEADLINE_EXCEEDED", f"no answer within {token[0]:g}s.")
            ),
            limit=self.max_in_flight,
            overdue=lambda sink, token, error: self._pulse.doubt(sink, token, error),
        )
        self._pulse = AttachedPulse(lambda: self._calls.is_busy, self._calls.wake, self.close)
        self._drain_reason: str | None = None

    def start(
        self,
        call: gateway_pb2.Call,
        token: Any,
        timeout: float,
        sink: Sink,
    ) -> None:
        """Have a call made; `sink` is told its timeout with `token`, and a result or CallFailed."""
        if not self._calls.is_open:
            raise CallFailed(_lost())
        if self._calls.holds(call.call_id):
            failure = Failure(
                "daemon", "DUPLICATE_CALL", f"call {call.call_id} is in flight already."
            )
            raise CallFailed(failure)
        call.timeout.FromNanoseconds(round(timeout * 1e9))
        data = gateway_pb2.AttachResponse(calls=[call]).SerializeToString()
        self._calls.submit({call.call_id: (timeout, token)}, data, timeout, sink)
        self._pulse.watch()

    def give_up(self, call_id: str) -> None:
        """Forget a call, and tell the process."""
        self._calls.give_up(call_id)

    def resolve(self, results: Any) -> None:
        """Take results; one for a call that is no longer waited for is ignored."""
        when = asyncio.get_running_loop().time()
        self._pulse.heard()
        self._calls.arrived([(result.call_id, result) for result in results], when)

    def drain(self, reason: str) -> None:
        """Tell the process that no more calls come."""
        self._drain_reason = reason
        self.is_draining = True
        self._calls.wake()

    async def next_message(self) -> bytes | None:
        """Return what is ready to be sent, bounded by bytes; None once the attachment is closed."""
        while self._calls.is_open:
            message = self._calls.take() + self._pulse.take()
            # A process that holds no call ends on that word, so all calls go before it.
            if self._drain_reason is not None and not self._calls.has_unsent:
                drain = gateway_pb2.AttachResponse()
                drain.drain.reason = self._drain_reason
                message += drain.SerializeToString()
                self._drain_reason = None
            if message:
                return message
            await self._calls.ready()
        return None

    def close(self) -> None:
        """Fail every call that has no result; the run makes them again."""
        self._pulse.stop(lambda: CallFailed(_lost()))
        self._calls.finish(lambda: CallFailed(_lost()))


def _lost() -> Failure:
    return Failure("transport", "UNAVAILABLE", "the attached process went away.", retryable=True)


def _infos(hello: gateway_pb2.Hello, kind: str) -> Any:
    """Return what a process offers of a kind."""
    return getattr(hello, kind)


def _offered(attachment: Attachment, kind: str, name: str) -> Any:
    """Return what an attachment says of a thing that it offers, if it does."""
    return next((info for info in _infos(attachment.hello, kind) if info.name == name), None)


def _check_replica(kind: str, info: Any, other: Attachment) -> None:
    """Refuse a name that is taken, unless by another process of the very same system."""
    name = info.name
    known = _offered(other, kind, name)
    if kind == "evaluators":
        raise AlreadyExists(
            f'another live attachment is named "{name}". Stop it, or use another name.'
        )
    compared = (
        ("version", known.version, info.version),
        ("description", known.description, info.description),
    )
    for what, said, says in compared:
        if said != says:
            raise AlreadyExists(
                f'another live attachment is named "{name}" and has {what} "{said}", not "{says}". '
                "Replicas are the same; stop it, or use another name."
            )
    if known != info:
        raise AlreadyExists(
            f'another live attachment is named "{name}" and declares other options or '
            "capabilities. Replicas are the same; stop it, or use another name."
        )


class Attachments:
    """The live attachments, by the names they offer."""

    def __init__(self, limit: int = MAX_ATTACHED) -> None:
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
        count = len(hello.systems) + len(hello.memory_systems) + len(hello.evaluators)
        if count > MAX_OFFERED:
            raise InvalidInput(
                f"an attachment offers at most {MAX_OFFERED} names, not {count:,}. Attach several."
            )
        for kind in _KINDS:
            offered = [info.name for info in _infos(hello, kind)]
            for name in offered:
                if not name or "/" in name or len(name) > 200:
                    raise InvalidInput(f'"{name}" cannot name an attachment; see SystemInfo.name.')
                if offered.count(name) > 1:
                    raise InvalidInput(f'the attachment offers "{name}" twice.')
            for info in _infos(hello, kind):
                for other in self.offering(kind, info.name):
                    _check_replica(kind, info, other)
        if len(self._live) >= self._limit:
            raise InvalidInput(f"{self._limit} processes are attached, the most this daemon takes.")

    async def remove(self, attachment: Attachment) -> None:
        """Forget a process and fail its calls."""
        async with self._changed:
            self._live.pop(attachment.id, None)
            self._changed.notify_all()
        attachment.close()

    def find(self, kind: str, name: str) -> Attachment | None:
        """Return the attachment that offers a thing of that kind, and takes calls.

        The kinds are `systems`, `memory_systems` and `evaluators`.
        """
        for attachment in self._live.values():
            if attachment.is_draining:
                continue
            if any(info.name == name for info in _infos(attachment.hello, kind)):
                return attachment
        return None

    @property
    def offers(self) -> list[tuple[str, Any, int]]:
        """What is attached: its kind, what it says of itself, and how many processes offer it."""
        found: dict[tuple[str, str], tuple[str, Any, int]] = {}
        for attachment in self._live.values():
            for kind in _KINDS:
                for info in _infos(attachment.hello, kind):
                    _, first, count = found.get((kind, info.name), (kind, info, 0))
                    found[kind, info.name] = (kind, first, count + 1)
        return list(found.values())

    def offering(self, kind: str, name: str) -> list[Attachment]:
        """Return all that offer a thing of that kind and take calls: its replicas."""
        return [
            attachment
            for attachment in self._live.values()
            if not attachment.is_draining and _offered(attachment, kind, name) is not None
        ]

    async def wait_for(self, kind: str, name: str, timeout: float) -> bool:
        """Wait until a thing of that kind is attached."""
        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait_for(lambda: self.find(kind, name) is not None)
        except TimeoutError:
            return False
        return True

    def drain(self, reason: str) -> None:
        """Tell every process that no more calls come."""
        for attachment in self._live.values():
            attachment.drain(reason)
