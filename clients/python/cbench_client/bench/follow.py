"""Followers of a run, through lost connections: each stored event once and in order."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from cbench_client._gen.cbench.v1 import bench_pb2

FINAL_STATES = frozenset(
    (bench_pb2.RUN_STATE_SUCCEEDED, bench_pb2.RUN_STATE_FAILED, bench_pb2.RUN_STATE_CANCELLED)
)
_FIRST_DELAY, _MAX_DELAY = 0.1, 2.0


class Follower:
    """Reads the events of one run.

    `start` opens the first stream; once the run's id is known, `watch` opens
    one that goes on after a sequence. `may_wait` decides, from an error and
    the seconds since the last sign of life, whether to try again; it raises
    if not.
    """

    def __init__(
        self,
        start: Callable[[], Any] | None,
        watch: Callable[[str, int], Any],
        is_over: Callable[[str, int], bool],
        may_wait: Callable[[grpc.RpcError, float], None],
        run_id: str = "",
        after: int = 0,
    ) -> None:
        self._start = start
        self._watch = watch
        self._is_over = is_over
        self._may_wait = may_wait
        self._run_id = run_id
        self._last = after
        self._finished = False

    def events(self) -> Iterator[bench_pb2.RunEvent]:
        """Yield events until the run has ended."""
        alive, delay = time.monotonic(), _FIRST_DELAY
        while True:
            try:
                for event in self._stream():
                    alive, delay = time.monotonic(), _FIRST_DELAY
                    yield event
                    # The reader's own time is not silence of the daemon.
                    alive = time.monotonic()
                if self._finished or self._is_over(self._run_id, self._last):
                    return
            except grpc.RpcError as error:
                if self._finished:
                    return
                self._may_wait(error, time.monotonic() - alive)
            time.sleep(delay)
            delay = min(delay * 2, _MAX_DELAY)

    def _stream(self) -> Iterator[bench_pb2.RunEvent]:
        if self._run_id or self._start is None:
            stream = self._watch(self._run_id, self._last)
        else:
            stream = self._start()
        try:
            for response in stream:
                for event in response.events:
                    if self._is_new(event):
                        yield event
        finally:
            stream.cancel()

    def _is_new(self, event: bench_pb2.RunEvent) -> bool:
        if event.sequence:
            if event.sequence <= self._last:
                return False
            self._last = event.sequence
            # A run that is resumed goes on after it has finished.
            self._finished = event.HasField("finished")
        if event.HasField("accepted"):
            self._run_id = event.accepted.run_id
        return True
