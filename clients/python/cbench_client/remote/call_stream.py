"""Calls over one stream: those to be sent, those without an outcome yet, and their deadlines.

Encoded messages that follow one another are one message with all their calls,
so what is ready travels together and nothing is encoded twice.

A call's time starts when it is sent, and ends when its outcome arrives: what we
do before and after is not the peer's. One that waits because as many are out as
the peer takes is not late for that.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from cbench_client.remote.standstill import was_stopped

MAX_BATCH_BYTES = 1024 * 1024

Ended = tuple[Any, Any, float]
"""What a call was for, its outcome or an exception, and the seconds since it was sent."""
Sink = Callable[[list[Ended]], None]
"""Told of calls that ended together. It must not raise."""

_NEVER = float("inf")
# Late calls that are remembered; what the peer says of them comes at once.
_LATE_KNOWN = 256


class _Parcel:
    """Calls that are sent together, as an encoded message, and what they have in common."""

    __slots__ = ("count", "data", "deadline", "dropped", "is_sent", "sent_at", "sink", "timeout")

    def __init__(self, count: int, data: bytes, timeout: float, now: float, sink: Sink) -> None:
        self.count = count
        self.data = data
        self.timeout = timeout
        self.deadline = now + timeout
        self.sink = sink
        self.sent_at = now
        self.is_sent = False
        self.dropped: tuple[str, ...] = ()
        """Calls that were given up before they were sent."""


class CallStream:
    """Matches outcomes with calls. Belongs to the loop it is made on.

    Args:
        cancellation: Encodes the ids of calls that are given up.
        late: Makes the exception for a call whose time is up, given what it is for.
        limit: The most calls that may be sent and have no outcome; None for any number.
        overdue: Told of a late call's sink, what it is for and that exception, in the place
            of the sink: whoever doubts that the peer lives may find out first.
    """

    def __init__(
        self,
        cancellation: Callable[[Sequence[str]], bytes],
        late: Callable[[Any], Exception],
        limit: int | None = None,
        overdue: Callable[[Sink, Any, Exception], None] | None = None,
    ) -> None:
        self._overdue = overdue
        self._loop = asyncio.get_running_loop()
        self._cancellation = cancellation
        self._late = late
        self._limit = limit
        self._in_flight = 0
        self._waiting: dict[str, tuple[Any, _Parcel]] = {}
        self._outbox: deque[_Parcel] = deque()
        self._cancelled: list[str] = []
        self._overdue_ids: dict[str, None] = {}
        self._wake: asyncio.Future[None] | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = _NEVER
        self.is_open = True

    def holds(self, call_id: str) -> bool:
        """Whether a call has no outcome yet."""
        return call_id in self._waiting

    @property
    def is_busy(self) -> bool:
        """Whether any call has no outcome yet."""
        return bool(self._waiting)

    @property
    def has_unsent(self) -> bool:
        """Whether any call waits to be sent."""
        return bool(self._outbox)

    def submit(
        self,
        calls: Mapping[str, Any],
        data: bytes,
        timeout: float,
        sink: Sink,
    ) -> None:
        """Send calls, given by their ids what each is for; `data` is a message that holds them."""
        parcel = _Parcel(len(calls), data, timeout, self._loop.time(), sink)
        for call_id, token in calls.items():
            self._waiting[call_id] = (token, parcel)
        self._outbox.append(parcel)
        self.wake()
        # One timer for all: with equal timeouts a new call is never the next to expire.
        if parcel.deadline < self._sweep_at:
            self._sweep_again_at(parcel.deadline)

    def give_up(self, call_id: str) -> None:
        """Forget a call, and tell the peer unless it cannot have heard of it."""
        parcel = self._forget(call_id)
        if parcel is None:
            return
        if parcel.is_sent:
            self._cancelled.append(call_id)
            self.wake()
        elif parcel.count == 1:
            self._outbox.remove(parcel)
        else:
            parcel.dropped += (call_id,)

    def _forget(self, call_id: str) -> _Parcel | None:
        entry = self._waiting.pop(call_id, None)
        if entry is None:
            return None
        self._in_flight -= entry[1].is_sent
        return entry[1]

    def wake(self) -> None:
        """Have `ready` return."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def ready(self) -> None:
        """Wait until there may be something to send, or the stream is closed."""
        if self.is_open and not self._may_send() and not self._cancelled:
            self._wake = self._loop.create_future()
            await self._wake

    def _may_send(self) -> bool:
        return bool(self._outbox) and (self._limit is None or self._in_flight < self._limit)

    def take(self) -> bytes:
        """Return what is to be sent now, as one message of a moderate size; empty if nothing is."""
        if self._cancelled:
            # Alone: peers start the calls of a message before they give any up.
            cancelled, self._cancelled = self._cancelled, []
            return self._cancellation(cancelled)
        parts: list[bytes] = []
        size = 0
        now = self._loop.time()
        while self._may_send():
            parcel = self._outbox[0]
            if parts and size + len(parcel.data) > MAX_BATCH_BYTES:
                break
            self._outbox.popleft()
            parcel.is_sent = True
            self._in_flight += parcel.count
            size += len(parcel.data)
            parts.append(parcel.data)
            if parcel.dropped:
                parts.append(self._cancellation(parcel.dropped))
            parcel.data = b""
            parcel.sent_at = now
            parcel.deadline = now + parcel.timeout
        return b"".join(parts)

    def arrived(self, outcomes: Sequence[tuple[str, Any]], when: float) -> None:
        """Hand outcomes to those who wait for them, many at once; others are dropped.

        `when` is the loop's time at which they came.
        """
        forget = self._waiting.pop
        last: _Parcel | None = None
        told: Sink | None = None
        ended: list[Ended] = []
        for call_id, outcome in outcomes:
            if call_id in self._overdue_ids and self._is_of_first_attempt(call_id, outcome, when):
                continue
            entry = forget(call_id, None)
            if entry is None:
                continue
            token, parcel = entry
            self._in_flight -= parcel.is_sent
            if parcel is not last:
                last = parcel
                if told is not None and parcel.sink != told:
                    told(ended)
                    ended = []
                told = parcel.sink
            ended.append((token, outcome, when - parcel.sent_at))
        if told is not None:
            told(ended)
        if self._limit is not None:
            self.wake()

    def _is_of_first_attempt(self, call_id: str, outcome: Any, when: float) -> bool:
        """Whether it says that a call is late whose present attempt still has time."""
        del self._overdue_ids[call_id]
        if call_id not in self._waiting or not isinstance(outcome, Message):
            return False
        says: Any = outcome
        is_late: bool = says.failure.reason == "DEADLINE_EXCEEDED"
        return is_late and when < self._waiting[call_id][1].deadline

    def finish(self, make_error: Callable[[], Exception]) -> None:
        """End every call that has no outcome, each with its own error, and take no more."""
        self.is_open = False
        self._sweep_again_at(_NEVER)
        waiting, self._waiting = self._waiting, {}
        self._outbox.clear()
        now = self._loop.time()
        for token, parcel in waiting.values():
            parcel.sink([(token, make_error(), now - parcel.sent_at)])
        self.wake()

    def _sweep_again_at(self, when: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep_at = when
        self._sweep = None if when == _NEVER else self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        now = self._loop.time()
        if was_stopped(now - self._sweep_at):
            for _, parcel in self._waiting.values():
                if parcel.deadline <= now:
                    parcel.deadline = now + parcel.timeout
        if self._outbox and self._limit is not None and self._in_flight >= self._limit:
            for parcel in self._outbox:
                parcel.deadline = max(parcel.deadline, now + parcel.timeout)
        late = [
            (call_id, *entry)
            for call_id, entry in self._waiting.items()
            if entry[1].deadline <= now
        ]
        for call_id, token, parcel in late:
            if self.holds(call_id):
                self.give_up(call_id)
                self._note_overdue(call_id)
                error = self._late(token)
                if self._overdue is None:
                    parcel.sink([(token, error, now - parcel.sent_at)])
                else:
                    self._overdue(parcel.sink, token, error)
        deadlines = (parcel.deadline for _, parcel in self._waiting.values())
        self._sweep_again_at(min(deadlines, default=_NEVER))

    def _note_overdue(self, call_id: str) -> None:
        self._overdue_ids[call_id] = None
        if len(self._overdue_ids) > _LATE_KNOWN:
            del self._overdue_ids[next(iter(self._overdue_ids))]
