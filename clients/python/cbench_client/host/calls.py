"""One call to a user's object, from its acceptance to its one outcome."""

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from cbench_client.errors import RemoteFailure

_lock = threading.Lock()

Trace = tuple[str, str]
"""A `traceparent` and a `tracestate`."""
UNTRACED: Trace = ("", "")


class CurrentCall:
    """What user code may know about the call it is answering.

    Nothing can interrupt a thread, so long synchronous work looks at
    `cancelled` now and then, or waits on it instead of sleeping.
    """

    __slots__ = ("_event", "_is_cancelled", "call_id", "deadline", "traceparent", "tracestate")

    def __init__(self, call_id: str, timeout: float | None, trace: Trace = UNTRACED) -> None:
        self.call_id = call_id
        self.traceparent, self.tracestate = trace
        """The W3C trace context, for spans of your own; empty means that nobody traces the call."""
        self.deadline = None if timeout is None else time.monotonic() + timeout
        """When the caller stops waiting, on the clock of `time.monotonic()`."""
        self._is_cancelled = False
        self._event: threading.Event | None = None

    @property
    def trace_headers(self) -> dict[str, str]:
        """The trace context as headers, for `opentelemetry.propagate.extract` and for requests."""
        headers = {"traceparent": self.traceparent, "tracestate": self.tracestate}
        return {name: value for name, value in headers.items() if value}

    @property
    def cancelled(self) -> threading.Event:
        """Set when the answer is no longer waited for."""
        # Made when first asked for: most calls never look, and it is not free.
        with _lock:
            if self._event is None:
                self._event = threading.Event()
                if self._is_cancelled:
                    self._event.set()
            return self._event

    def cancel(self) -> None:
        """Set `cancelled`."""
        with _lock:
            self._is_cancelled = True
            if self._event is not None:
                self._event.set()

    @property
    def remaining(self) -> float | None:
        """Seconds left, not below zero; None means no limit."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


_current: contextvars.ContextVar[CurrentCall] = contextvars.ContextVar("cbench_current_call")


def current_call() -> CurrentCall:
    """Return the call being answered. Raises `LookupError` outside of one."""
    try:
        return _current.get()
    except LookupError:
        raise LookupError("current_call() works only inside a call that is served") from None


def enter_call(call: CurrentCall) -> None:
    """Make `call` the current one of this task or thread."""
    _current.set(call)


Done = Callable[["Job", RemoteFailure | None], None]


class Job:
    """A call being answered: `reply` is filled by user code, `on_done` is called once.

    The outcome and the end of the user's code are two things. A cancelled or
    overdue call has its outcome at once, while its thread may run on.
    """

    __slots__ = (
        "call",
        "forget",
        "has_begun",
        "on_done",
        "reply",
        "request",
        "settled",
        "task",
    )

    def __init__(self, request: Any, reply: Message, call: CurrentCall, on_done: Done) -> None:
        self.request = request
        self.reply = reply
        self.call = call
        self.on_done = on_done
        self.settled = False
        self.has_begun = False
        self.task: asyncio.Task[None] | None = None
        self.forget: Callable[[Job], None] | None = None

    def settle(self, failure: RemoteFailure | None) -> None:
        """Give the outcome, unless there is one already."""
        if self.settled:
            return
        self.settled = True
        if self.forget is not None:
            self.forget(self)
        self.on_done(self, failure)

    def abandon(self, failure: RemoteFailure) -> None:
        """Give the outcome now, and tell user code to stop."""
        if self.settled:
            return
        self.call.cancel()
        self.settle(failure)
        # A task cancelled before its first step would never give its place back.
        if self.task is not None and self.has_begun:
            self.task.cancel()

    def cancel(self) -> None:
        """Abandon the call because it is no longer waited for."""
        self.abandon(RemoteFailure("the caller gave up", reason="CANCELLED"))

    def expire(self) -> None:
        """Abandon the call because its time is up."""
        self.abandon(
            RemoteFailure("no answer within the time the caller gave", reason="DEADLINE_EXCEEDED")
        )
