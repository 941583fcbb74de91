"""Worker programs: separate processes that score, and may be killed without harm.

They are started by exec, never forked from this process nor run by
multiprocessing: grpc does not survive a fork, one killed member of a process
pool breaks all of it, and spawning re-runs scripts without a main guard.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys

import msgspec

from cbench_server.errors import EvaluatorBroken, ShuttingDown, Unencodable
from cbench_server.scoring.assessment import CannotRebuild, GaveUp, checked
from cbench_server.scoring.messages import MAX_MESSAGE, Reply, Request
from cbench_server.scoring.programs import HEADER_BYTES, body_length, environment, frame
from cbench_server.scoring.recipe import Recipe
from cbench_server.types import Assessment, Example

_log = logging.getLogger(__name__)

_GRACE_S = 5.0


class WorkerPool:
    """Up to `size` workers, started when they are needed and kept.

    A worker that dies, or takes longer than `call_timeout` seconds, is
    replaced, with all it started; its request is tried once more. Belongs to
    one event loop.
    """

    def __init__(
        self,
        size: int | None = None,
        call_timeout: float = 60.0,
        python: str = sys.executable,
    ) -> None:
        self._permits = asyncio.Semaphore(size or min(os.cpu_count() or 1, 8))
        self._call_timeout = call_timeout
        self._python = python
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._reaping: set[asyncio.Task[None]] = set()
        self._closed = False

    async def assess(self, recipe: Recipe, original: Example, processed: Example) -> Assessment:
        """Apply an evaluator in a worker.

        Raises Unencodable if the pair cannot be sent, CannotRebuild if the
        worker cannot make the evaluator, and EvaluatorBroken if the evaluator
        raises something or two workers are lost to it.
        """
        name = recipe.evaluator
        request = self._request(recipe, original, processed)
        losses: list[str] = []
        async with self._permits:
            while len(losses) < 2:
                try:
                    return _assessment(name, await self._exchange(request))
                except _Lost as lost:
                    losses.append(str(lost))
                    _log.warning('a worker was lost to evaluator "%s": it %s', name, lost)
        raise GaveUp(f'evaluator "{name}" lost two workers: one {losses[0]}, one {losses[1]}')

    async def close(self) -> None:
        """Kill every worker and wait until none is left; whoever still waits is refused."""
        self._closed = True
        for worker in [*self._workers]:
            self._discard(worker)
        while self._reaping:
            await asyncio.wait(self._reaping)

    def _request(self, recipe: Recipe, original: Example, processed: Example) -> bytes:
        request = Request(recipe, self._call_timeout + _GRACE_S, original, processed)
        try:
            body = msgspec.msgpack.encode(request)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Unencodable(f"a pair cannot be sent to a worker: {error}") from error
        if len(body) > MAX_MESSAGE:
            raise Unencodable(
                f"a pair of {len(body):,} bytes cannot be sent to a worker; the limit is "
                f"{MAX_MESSAGE:,}"
            )
        return frame(body)

    async def _exchange(self, request: bytes) -> Reply:
        worker = await self._take()
        try:
            async with asyncio.timeout(self._call_timeout):
                reply = await worker.exchange(request)
        except TimeoutError as error:
            self._discard(worker)
            raise _Lost(f"did not answer within {self._call_timeout:g} s") from error
        except (asyncio.IncompleteReadError, OSError) as error:
            self._discard(worker)
            raise _Lost("died") from error
        except BaseException:
            # Its answer to a request that nobody waits for would be taken for another's.
            self._discard(worker)
            raise
        self._idle.append(worker)
        return reply

    async def _take(self) -> "_Worker":
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            self._discard(worker)
        if self._closed:
            raise ShuttingDown("the worker pool is closed")
        process = await asyncio.create_subprocess_exec(
            self._python,
            "-P",
            "-m",
            "cbench_server.scoring.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(),
            start_new_session=True,
            # Reading never pauses, so that a killed worker's pipes always reach their end.
            limit=MAX_MESSAGE,
        )
        worker = _Worker(process)
        self._workers.add(worker)
        if self._closed:
            self._discard(worker)
            raise ShuttingDown("the worker pool is closed")
        return worker

    def _discard(self, worker: "_Worker") -> None:
        if worker not in self._workers:
            return
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        worker.kill()
        task = asyncio.create_task(worker.reap())
        self._reaping.add(task)
        task.add_done_callback(self._reaping.discard)


class _Lost(Exception):
    """A worker ended before it answered; says how."""


class _Worker:
    """One worker program, which does one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._replies = process.stdout

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    async def exchange(self, request: bytes) -> Reply:
        self._requests.write(request)
        await self._requests.drain()
        length = body_length(await self._replies.readexactly(HEADER_BYTES))
        if length > MAX_MESSAGE:
            raise OSError(f"a reply of {length:,} bytes")
        return msgspec.msgpack.decode(await self._replies.readexactly(length), type=Reply)

    def kill(self) -> None:
        """Kill the process and what it started: they share a session of their own."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._requests.close()

    async def reap(self) -> None:
        await self._process.wait()


class _RemoteTraceback(Exception):
    """Stands as the cause of what was raised in a worker, to show where."""


def _assessment(name: str, reply: Reply) -> Assessment:
    if not reply.built:
        message = f'evaluator "{name}" cannot be rebuilt in a worker: {reply.error}'
        raise CannotRebuild(message) from _RemoteTraceback(reply.stack_trace)
    if reply.error:
        message = f'evaluator "{name}" failed in a worker: {reply.error}'
        raise EvaluatorBroken(message) from _RemoteTraceback(reply.stack_trace)
    return checked(name, reply)
