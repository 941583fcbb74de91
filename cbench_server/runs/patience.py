"""Patience with evaluators, judges, readers and datasets that are away, as with systems.

Retry (retry.py) is that of a system, whose calls are many and started together.
Here each call is awaited by itself, and asking again is the only way to learn
that the other side is back.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from cbench_server.errors import (
    CallFailed,
    ComponentAway,
    DatasetAway,
    EvaluatorBroken,
    ExamplesAway,
    RunFailed,
)
from cbench_server.results import Failure
from cbench_server.runs.silence import Silence
from cbench_server.runs.waiting import Waiting
from cbench_server.scoring.threads import in_own_thread

T = TypeVar("T")

_MAX_DEATHS = 2
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_UNANNOUNCED_S = 1.0


class _Gate:
    """One that may be away, and those who ask it one at a time while it is."""

    def __init__(self) -> None:
        self.since: float | None = None
        self.is_announced = False
        self.pause = _FIRST_PAUSE_S
        self.one_by_one = asyncio.Lock()


class Read(Protocol):
    """Has something of a dataset read."""

    async def __call__(self, label: str, work: Callable[[], T], *, has_begun: bool = False) -> T:
        """See `Patience.read`."""
        ...


async def read_once(label: str, work: Callable[[], T], *, has_begun: bool = False) -> T:
    """Wait for nothing that is away."""
    return await in_own_thread(work)


class Patience:
    """Asks again what failed because the other side is away, for as long as the run waits.

    A call that was in flight at two deaths of the other side is failed, since it may be what
    kills it. Such suspects are asked one by one, so that no other call is in flight then.

    Args:
        limit: Seconds until the run fails.
        is_heard: Whether the run has answers already, so that all were there.
    """

    def __init__(
        self,
        limit: float,
        waiting: Waiting,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_heard: bool = False,
    ) -> None:
        self._limit = limit
        self._waiting = waiting
        self._clock = clock
        self._gates: dict[str, _Gate] = {}
        self._silences: dict[str, Silence] = {}
        self._is_heard = is_heard

    async def call(self, who: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what is answered. `ask` raises ComponentAway if nobody is there to answer."""
        gate = self._gates.setdefault(who, _Gate())
        ask = self._listening(who, ask)
        deaths = 0
        while True:
            if gate.since is None and not deaths:
                try:
                    return await ask()
                except ComponentAway as error:
                    deaths += error.was_asked
                    self._close(gate)
                    last = error
            else:
                async with gate.one_by_one:
                    was_there = gate.since is None
                    try:
                        reply = await ask()
                    except ComponentAway as error:
                        deaths += was_there and error.was_asked
                        self._close(gate)
                        last = error
                        if deaths < _MAX_DEATHS:
                            await self._wait(who, gate, error)
                    except Exception:
                        # Whatever it says, it is there.
                        await self._open(who, gate)
                        raise
                    else:
                        await self._open(who, gate)
                        return reply
            if deaths >= _MAX_DEATHS:
                raise EvaluatorBroken(f"{who} died twice with this row: {last}") from last

    async def read(self, label: str, work: Callable[[], T], *, has_begun: bool = False) -> T:
        """Return what is read of a dataset in a thread; `work` is done again if it was away.

        One that nobody has reached yet is not waited for: its name or the network may be wrong.
        """

        async def ask() -> T:
            try:
                return await in_own_thread(work)
            except DatasetAway as error:
                if not (has_begun or error.was_there):
                    raise
                raise ExamplesAway(str(error), was_asked=False) from error

        return await self.call(f'dataset "{label}"', ask)

    def _listening(self, who: str, ask: Callable[[], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """Give up one that is there, and has never answered anything."""
        if who not in self._silences:
            self._silences[who] = Silence(
                who, "EVALUATOR_GONE", self._limit, self._clock, is_heard=self._is_heard
            )
        silence = self._silences[who]

        async def asked() -> T:
            sent_at = self._clock()
            try:
                reply = await ask()
            except CallFailed as error:
                silence.note(error.failure, sent_at)
                silence.check()
                raise
            silence.heard()
            return reply

        return asked

    def _close(self, gate: _Gate) -> None:
        if gate.since is None:
            gate.since = self._clock()
            gate.pause = _FIRST_PAUSE_S

    async def _wait(self, who: str, gate: _Gate, error: ComponentAway) -> None:
        assert gate.since is not None
        away = self._clock() - gate.since
        if away > self._limit:
            raise RunFailed(
                Failure(
                    "transport",
                    "DATASET_GONE" if isinstance(error, ExamplesAway) else "EVALUATOR_GONE",
                    f"{who} stayed away for {self._limit:g}s: {str(error).rstrip('.')}. "
                    f"{error.way_out}",
                ),
                who=who,
            ) from error
        if away > _UNANNOUNCED_S and not gate.is_announced:
            gate.is_announced = True
            await self._waiting.note(who, f"{who} is away: {error}")
        await asyncio.sleep(gate.pause)
        gate.pause = min(gate.pause * 2, _LONGEST_PAUSE_S)

    async def _open(self, who: str, gate: _Gate) -> None:
        gate.since = None
        if gate.is_announced:
            gate.is_announced = False
            await self._waiting.note(who, None)
