"""The pulse of an attached process: whether it lives, when it is silent or a call's time is up.

A process that is stopped, or whose network is gone, looks like one that thinks for long, and
cannot be dialled to find out. So it is sent work of no kind, which every process answers
with UNIMPLEMENTED. Whatever it sends then, it lives, and the calls were late; if it sends nothing,
it is gone, and they were lost.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from cbench_client._gen.cbench.v1 import gateway_pb2
from cbench_client.remote.call_stream import Sink
from cbench_client.remote.pulse import PATIENCE_SECONDS, SILENCE_SECONDS


class AttachedPulse:
    """Late calls of one attachment, until it is known whether its process lives.

    Args:
        is_busy: Says whether calls are out.
        wake: Has `take` called.
        lost: Told that the process is gone.
    """

    def __init__(
        self, is_busy: Callable[[], bool], wake: Callable[[], None], lost: Callable[[], None]
    ) -> None:
        self._is_busy = is_busy
        self._wake = wake
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._late: list[tuple[Sink, Any, Exception]] = []
        self._watch: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard_at = 0.0
        self._is_due = False
        self._count = 0

    def watch(self) -> None:
        """Watch over the calls that are out, from now until there are none."""
        if self._watch is None:
            self._heard_at = self._loop.time()
            self._watch = self._loop.call_later(SILENCE_SECONDS, self._look)

    def _look(self) -> None:
        self._watch = None
        if not self._is_busy():
            return
        left = self._heard_at + SILENCE_SECONDS - self._loop.time()
        if left <= 0:
            self._ask()
        self._watch = self._loop.call_later(left if left > 0 else SILENCE_SECONDS, self._look)

    def doubt(self, sink: Sink, token: Any, error: Exception) -> None:
        """Tell a late call's end once it is known."""
        self._late.append((sink, token, error))
        self._ask()

    def _ask(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(PATIENCE_SECONDS, self._lost)
            self._is_due = True
            self._wake()

    def take(self) -> bytes:
        """Return the message that asks for a sign of life, if one is to be sent now."""
        if not self._is_due:
            return b""
        self._is_due = False
        self._count += 1
        nothing = gateway_pb2.Call(call_id=f"pulse-{self._count}")
        nothing.timeout.FromNanoseconds(round(PATIENCE_SECONDS * 1e9))
        return gateway_pb2.AttachResponse(calls=[nothing]).SerializeToString()

    def heard(self) -> None:
        """Take note that the process has sent something: what was late was late."""
        self._heard_at = self._loop.time()
        if self._timer is not None:
            self._end(None)

    def stop(self, make_error: Callable[[], Exception]) -> None:
        """End the calls that are in doubt as lost, each with an error of its own."""
        if self._watch is not None:
            self._watch.cancel()
        self._end(make_error)

    def _end(self, make_error: Callable[[], Exception] | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._is_due = None, False
        late, self._late = self._late, []
        for sink, token, error in late:
            sink([(token, error if make_error is None else make_error(), 0.0)])
