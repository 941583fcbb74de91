"""Faults of streams."""

import asyncio
import time
from typing import Any

from faults.registry import fault

from cbench_client.errors import RemoteFailure
from cbench_client.host import lane, offers

_STILL_AT_WORK_S = 0.05


@fault
def half_close_drops_calls() -> None:
    close, bound = lane.Lane.close, offers.UserMethod._bound

    def dropping(self: Any) -> None:
        self.abandon()
        close(self)

    def late(self: Any, *given: Any) -> Any:
        call = bound(self, *given)

        def slowly() -> Any:
            time.sleep(_STILL_AT_WORK_S)
            return call()

        return call if self.is_async else slowly

    lane.Lane.close = dropping
    # Calls that were quicker than the end of the stream could not be dropped.
    offers.UserMethod._bound = late


@fault
def half_close_is_ignored() -> None:
    lane.Lane.close = lambda self: None


@fault
def unknown_cancellations_break() -> None:
    cancel = lane.Lane.cancel

    def strict(self: Any, call_id: str) -> None:
        if call_id not in self._by_id:
            raise KeyError(call_id)
        cancel(self, call_id)

    lane.Lane.cancel = strict


@fault
def cancelled_calls_are_answered() -> None:
    lane.Lane.cancel = lambda self, call_id: self._by_id[call_id].cancel()


@fault
def replies_travel_in_one_message() -> None:
    lane.BATCH_BYTES = 10**9
    send = lane.Lane.send

    async def late(self: Any) -> None:
        write = self._write

        async def write_late(data: bytes) -> None:
            await asyncio.sleep(0.5)
            await write(data + (self._next_batch() if self._ready else b""))

        self._write = write_late
        await send(self)

    lane.Lane.send = late


@fault
def only_the_first_of_a_message() -> None:
    start = lane.Lane.start
    seen: list[int] = []

    def first(self: Any, kind: str, request: Any, *rest: Any, **named: Any) -> bool:
        seen.append(1)
        return len(seen) % 3 == 0 or start(self, kind, request, *rest, **named)

    lane.Lane.start = first


@fault
def a_bad_call_ends_the_stream() -> None:
    def fail(self: Any, call_id: str, failure: RemoteFailure) -> None:
        raise RuntimeError(str(failure))

    lane.Lane.fail = fail
