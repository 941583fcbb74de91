"""The actor: scores batches of pairs on a node of the cluster, one at a time.

What it is given is bytes, as worker programs take them; nothing of it is
unpickled. Evaluators are those that the daemon has, made by their names.
"""

import asyncio
import time

import msgspec

from cbench_server import __version__
from cbench_server.cluster.messages import Asked, Batch, Hello, Scored
from cbench_server.sandbox.client import SandboxUnavailable, shared_sandbox
from cbench_server.sandbox.proof import prove
from cbench_server.scoring.assessment import Unscorable, assess_here
from cbench_server.scoring.messages import Reply, Request
from cbench_server.scoring.worker import built_once, failed
from cbench_server.scoring.workers import WorkerPool


class Scorer:
    """One CPU of a node: one worker program, and a sandbox where that was proved."""

    def __init__(self, call_timeout: float) -> None:
        self._call_timeout = call_timeout
        self._workers: WorkerPool | None = None
        self._one = asyncio.Lock()

    async def hello(self, policy: str, *, with_sandbox: bool) -> bytes:
        """Say which version this is, and whether programs can be locked in."""
        problem = "not asked for"
        if with_sandbox:
            problem = await asyncio.to_thread(_problem, policy)
        return msgspec.msgpack.encode(Hello(__version__, problem))

    async def score(self, packed: bytes) -> bytes:
        """Score a batch, in its order."""
        batch = msgspec.msgpack.decode(packed, type=list[Asked])
        scored = []
        # The next batch is here already, but the CPU is one.
        async with self._one:
            started = time.perf_counter()
            for asked in batch:
                scored.append(await self._score(asked))
            seconds = time.perf_counter() - started
        return msgspec.msgpack.encode(Batch(scored, seconds))

    async def _score(self, asked: Asked) -> Scored:
        if asked.runs_programs:
            return Scored(await _in_sandbox(asked.request))
        if self._workers is None:
            self._workers = WorkerPool(1, self._call_timeout)
        try:
            return Scored(await self._workers.exchange(asked.evaluator, asked.request))
        except Unscorable as error:
            return Scored(unscorable=str(error))


async def _in_sandbox(request: bytes) -> bytes:
    """Ask an evaluator that locks in what it runs, so that it needs no program of its own."""
    built = False
    try:
        pair = msgspec.msgpack.decode(request, type=Request)
        evaluator = built_once(pair.recipe)
        built = True
        found = await assess_here(evaluator, pair.original, pair.processed)
        return msgspec.msgpack.encode(Reply(found.scores, found.details))
    except Exception as error:
        return msgspec.msgpack.encode(failed(error, built=built))


def _problem(policy: str) -> str:
    try:
        prove(shared_sandbox(policy))
    except SandboxUnavailable as error:
        return str(error)
    return ""
