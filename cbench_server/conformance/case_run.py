"""Run of one case: its names, calls under way, streams, programs and gateway."""

import asyncio
import itertools
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from cbench_client.remote.channel import open_channel
from cbench_server.conformance.cases import Case
from cbench_server.conformance.gateway import Gateway, Session
from cbench_server.conformance.outcomes import Pending, Transport
from cbench_server.conformance.program import Program
from cbench_server.conformance.streamed import Streamed
from cbench_server.conformance.subject import Subject
from cbench_server.conformance.unary import Unary
from cbench_server.conformance.values import natural


class CaseRun:
    """The state of one case while it runs; everything it opened is closed at its end."""

    gateway: Gateway
    """Set by the step `gateway`."""

    def __init__(self, subject: Subject, case: Case) -> None:
        self.subject, self.case = subject, case
        self.key = uuid.uuid4().hex[:12]
        self.channel: Any = subject.channel
        self.target = subject.target
        self.program: Program | None = None
        self.session: Session | None = None
        self.pending: dict[str, list[Pending]] = {}
        self.streams: dict[str, Streamed] = {}
        self.watches: dict[str, Any] = {}
        self.complaint = ""
        self._stack = AsyncExitStack()
        self._numbers = itertools.count(1)
        self._names: dict[str, Any] = {
            "$key": self.key,
            "$system": subject.name_of("system"),
            "$memory": subject.name_of("memory"),
            "$evaluator": subject.name_of("evaluator"),
        }
        self._names.update(natural(dict(case.names), self._names))

    async def __aenter__(self) -> "CaseRun":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        left = [call for calls in self.pending.values() for call in calls if not call.result.done()]
        # A stream that is over has no calls to give up.
        await asyncio.gather(*(call.cancel() for call in left), return_exceptions=True)
        await self._stack.aclose()
        futures = [call.result for calls in self.pending.values() for call in calls]
        for future in futures:
            future.cancel()
        await asyncio.gather(*futures, return_exceptions=True)

    async def read(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the names in a step by their values."""
        if "$certs" not in self._names and "$certs" in str(step):
            self._names["$certs"] = await self.subject.certificates()
        self._names["$target"] = self.target
        read: dict[str, Any] = natural(dict(step), self._names)
        return read

    def call_id(self) -> str:
        """Return an id that no other call has."""
        return f"{self.key}-{next(self._numbers)}"

    def on_end(self, clean: Callable[..., Any], *arguments: Any) -> None:
        """Await `clean` when the case is over."""
        self._stack.push_async_callback(clean, *arguments)

    def connect(self, target: str, **settings: Any) -> None:
        """Connect to another process, or to the same one with other credentials."""
        self.target = target
        self.channel = open_channel(target, **settings)
        self.streams.clear()
        self.on_end(self.channel.close)

    async def transport(self, over: str, kind: str) -> Transport:
        """Return what makes calls in the given way."""
        if over == "unary":
            return Unary(self.channel)
        if over == "stream":
            return self.stream(kind, kind)
        if self.session is None:
            self.session = await self.subject.attached()
        return self.session.calls

    def stream(self, name: str, kind: str) -> Streamed:
        """Return a stream of this case by its name; opened when first asked for."""
        if name not in self.streams:
            self.streams[name] = Streamed(self.channel, kind)
            self.on_end(self.streams[name].close)
        return self.streams[name]
