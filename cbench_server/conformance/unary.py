"""Unary calls."""

import asyncio
import functools
import math
from typing import Any

import grpc
import grpc.aio

from cbench_server.conformance.messages import METHODS, Facts, response_from
from cbench_server.conformance.outcomes import (
    UNTRACED,
    Pending,
    Trace,
    answer_facts,
    decoded,
    status_facts,
)

# By how much the deadline of the two sides may differ.
_CLOCK_S = 0.05


def _as_overdue(facts: Facts) -> Facts:
    # At the deadline a server's transport may reset the stream before the
    # client's own timer fires, which the client then reports as CANCELLED.
    if facts["code"] != "CANCELLED" or facts["is_told"]:
        return facts
    return {**facts, "code": "DEADLINE_EXCEEDED", "reason": "DEADLINE_EXCEEDED"}


class Unary:
    """Makes every call as a separate request."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    async def begin(
        self,
        kind: str,
        request: Any,
        call_id: str,
        timeout: float | None,
        trace: Trace = UNTRACED,
    ) -> Pending:
        """Send a call."""
        call = self._channel.unary_unary(METHODS[kind])(
            request.SerializeToString(), timeout=timeout, metadata=tuple(trace.items())
        )

        is_given_up = False
        loop = asyncio.get_running_loop()
        overdue_at = math.inf if timeout is None else loop.time() + timeout - _CLOCK_S

        async def result() -> Facts:
            try:
                data = await call
            except grpc.aio.AioRpcError as error:
                facts = status_facts(error)
                return _as_overdue(facts) if loop.time() >= overdue_at else facts
            except asyncio.CancelledError:
                # A case whose time is up is cancelled too, and must not go on.
                if not is_given_up:
                    raise
                return {"code": "CANCELLED", "reason": "CANCELLED"}
            return answer_facts(
                kind, decoded(functools.partial(response_from, kind), data), request
            )

        async def give_up() -> None:
            nonlocal is_given_up
            is_given_up = True
            call.cancel()

        return Pending(asyncio.create_task(result()), give_up)
