"""Traces, as those who call others know them: what they do, and what to tell the other side.

Nothing here knows who keeps traces. Without a `TRACE` nobody does, and nothing is told.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from cbench_server.errors import CallFailed
from cbench_server.models.chat_answer import Trouble

UNTRACED: dict[str, str] = {}
"""What is told where nobody traces."""


class Span(Protocol):
    """Something that is under way, in a trace."""

    @property
    def traceparent(self) -> str:
        """Its id in the W3C trace context."""
        ...

    @property
    def headers(self) -> dict[str, str]:
        """The W3C trace context of what it calls, as HTTP headers and gRPC metadata carry it."""
        ...

    def child(self, name: str, attributes: dict[str, str | int], *, calls: bool = False) -> "Span":
        """Begin a part of it; `calls` says that the part is a call of another process."""
        ...

    def note(self, **attributes: str | int | float) -> None:
        """Add what became known of it."""
        ...

    def end(self, failure: str = "") -> None:
        """End it, as failed if a reason is given."""
        ...


class Tracer(Protocol):
    """Keeps traces."""

    def run(self, run_id: str, attributes: dict[str, str | int]) -> Span:
        """Begin the span of a run; all spans of one run have the same trace."""
        ...

    def close(self) -> None:
        """Send what is not yet sent."""
        ...


TRACE: ContextVar[Span | None] = ContextVar("trace", default=None)
"""What is under way here."""


@contextmanager
def under(span: Span | None) -> Iterator[None]:
    """Do something as a part of a span, and end the span with it."""
    if span is None:
        yield
        return
    token = TRACE.set(span)
    failure = "CANCELLED"
    try:
        yield
        failure = ""
    except CallFailed as error:
        failure = error.failure.reason
        raise
    except Trouble as trouble:
        failure = trouble.reason
        raise
    except Exception as error:
        failure = type(error).__name__
        raise
    finally:
        TRACE.reset(token)
        span.end(failure)


@contextmanager
def called(name: str, **attributes: str | int) -> Iterator[dict[str, str]]:
    """Call another process; yield the trace context to tell it, empty if nobody traces."""
    span = TRACE.get()
    if span is None:
        yield UNTRACED
        return
    child = span.child(name, attributes, calls=True)
    with under(child):
        yield child.headers
