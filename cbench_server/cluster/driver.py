"""Driver program: has pairs that come on standard input scored on a Ray cluster.

Started by workers.py; of no use by hand. It is a process of its own because Ray
ends the process that talks to a cluster when that cluster is gone for a minute.
"""

import asyncio
import collections
import contextlib
import os
import sys
import time
from dataclasses import dataclass
from typing import BinaryIO

import msgspec
from ray.exceptions import RayError

from cbench_server.cluster.joining import join, leave
from cbench_server.cluster.messages import (
    SANDBOX,
    Asked,
    Batch,
    News,
    Scored,
    Settings,
    Told,
)
from cbench_server.cluster.seats import Seat, Seats
from cbench_server.sandbox.client import SandboxUnavailable, shared_sandbox
from cbench_server.sandbox.proof import prove
from cbench_server.scoring.programs import header, read_frame, take_pipes

_MOST_PAIRS = 64
# Long enough for its way to cost little, short enough for the last seat not to be waited for.
_BATCH_S = 0.25
_MOST_LOSSES = 3
_PATIENCE_S = 5.0


@dataclass(slots=True)
class _Pair:
    asked: Asked
    since: float
    losses: int = 0
    why: str = ""


class Driver:
    """Hands pairs that wait to seats that are free."""

    def __init__(self, settings: Settings, replies: BinaryIO) -> None:
        self._replies = replies
        self._waiting: dict[bool, collections.deque[_Pair]] = {
            False: collections.deque(),
            True: collections.deque(),
        }
        self._seconds: dict[str, float] = {}
        self._seats = Seats(settings, self._changed)
        self._batches: set[asyncio.Task[None]] = set()

    async def serve(self, requests: asyncio.StreamReader) -> None:
        """Score until standard input closes."""
        chores = [
            asyncio.create_task(self._seats.keep()),
            asyncio.create_task(self._tell_of_absence()),
        ]
        try:
            while True:
                asked = msgspec.msgpack.decode(await read_frame(requests), type=Asked)
                self._waiting[asked.runs_programs].append(_Pair(asked, time.monotonic()))
                self._hand_out()
        except asyncio.IncompleteReadError:
            pass
        finally:
            for chore in chores:
                chore.cancel()

    def _changed(self, what: str) -> None:
        seats = self._seats.all
        self._write(News(len(seats), sum(seat.is_sandboxed for seat in seats), what))
        self._hand_out()

    def _hand_out(self) -> None:
        for seat in sorted(self._seats.all, key=lambda each: each.under_way):
            while seat.is_free and (pairs := self._next_for(seat)):
                seat.under_way += 1
                task = asyncio.create_task(self._score(seat, pairs))
                self._batches.add(task)
                task.add_done_callback(self._batches.discard)

    def _next_for(self, seat: Seat) -> list[_Pair]:
        """Take pairs for about a quarter of a second, and leave their share to the others."""
        for runs_programs in (True, False) if seat.is_sandboxed else (False,):
            queue = self._waiting[runs_programs]
            if not queue:
                continue
            others = [each for each in self._seats.all if each.is_sandboxed or not runs_programs]
            share = -(-len(queue) // max(len(others), 1))
            each = self._seconds.get(queue[0].asked.evaluator, _BATCH_S)
            many = max(1, min(_MOST_PAIRS, share, int(_BATCH_S / max(each, 1e-6))))
            return [queue.popleft() for _ in range(many)]
        return []

    async def _score(self, seat: Seat, pairs: list[_Pair]) -> None:
        try:
            packed = msgspec.msgpack.encode([pair.asked for pair in pairs])
            batch = msgspec.msgpack.decode(await seat.actor.score.remote(packed), type=Batch)
        except (RayError, OSError) as error:
            self._seats.lost(seat, type(error).__name__)
            self._again(pairs, type(error).__name__)
        else:
            self._learn(pairs, batch.seconds / len(pairs))
            for pair, scored in zip(pairs, batch.scored, strict=True):
                self._write(Told(pair.asked.number, scored, repeats=pair.losses))
        finally:
            seat.under_way -= 1
            self._hand_out()

    def _again(self, pairs: list[_Pair], why: str) -> None:
        """Put pairs whose seat was lost before all others, but none for ever."""
        for pair in reversed(pairs):
            pair.losses += 1
            if pair.losses < _MOST_LOSSES:
                pair.since = time.monotonic()
                self._waiting[pair.asked.runs_programs].appendleft(pair)
                continue
            name = pair.asked.evaluator
            text = f'evaluator "{name}" lost {_MOST_LOSSES} scorers of the cluster: {why}'
            told = Told(pair.asked.number, Scored(unscorable=text), repeats=pair.losses)
            self._write(told)

    def _learn(self, pairs: list[_Pair], each: float) -> None:
        name = pairs[0].asked.evaluator
        before = self._seconds.get(name, each)
        self._seconds[name] = 0.7 * before + 0.3 * each

    async def _tell_of_absence(self) -> None:
        """Give pairs back that nobody can take, so that their runs wait and say for what."""
        while True:
            await asyncio.sleep(1.0)
            seats = self._seats.all
            for runs_programs, queue in self._waiting.items():
                if any(seat.is_sandboxed or not runs_programs for seat in seats):
                    continue
                late = time.monotonic() - _PATIENCE_S
                while queue and queue[0].since < late:
                    pair = queue.popleft()
                    away = _no_sandbox() if seats else "no node of the Ray cluster scores"
                    self._write(Told(pair.asked.number, away=away, repeats=pair.losses))

    def _write(self, message: Told | News) -> None:
        body = msgspec.msgpack.encode(message)
        self._replies.write(header(body) + body)
        self._replies.flush()


def _no_sandbox() -> str:
    return (
        f"no node of the Ray cluster offers {SANDBOX}, which programs need; run `cbench doctor "
        "--node` on a node and start it as that says"
    )


def main() -> None:
    """Join the cluster, and score until standard input closes."""
    requests, replies = take_pipes()
    settings = msgspec.json.decode(sys.argv[1], type=Settings)
    _join(settings)
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(_serve(settings, requests, replies))
    leave()


async def _serve(settings: Settings, requests: BinaryIO, replies: BinaryIO) -> None:
    reader = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), requests)
    await Driver(settings, replies).serve(reader)


def _join(settings: Settings) -> None:
    if settings.address != "local":
        join(settings.address)
        return
    count = settings.most_seats or os.cpu_count() or 1
    offered = {}
    with contextlib.suppress(SandboxUnavailable):
        prove(shared_sandbox(settings.policy))
        offered[SANDBOX] = count
    join("local", num_cpus=count, resources=offered)


if __name__ == "__main__":
    main()
