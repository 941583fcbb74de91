"""Workers: programs that score pairs, and may be killed without harm."""

import logging
import sys

import msgspec

from cbench_server.errors import EvaluatorBroken, Unencodable
from cbench_server.scoring.assessment import CannotRebuild, TooLarge, Unscorable, checked
from cbench_server.scoring.messages import Reply, Request
from cbench_server.scoring.programs import MAX_BODY, Lost, ProgramPool
from cbench_server.scoring.recipe import Recipe
from cbench_server.types import Assessment, Example

_log = logging.getLogger(__name__)

_GRACE_S = 5.0


class WorkerPool:
    """Up to `size` workers, each given `call_timeout` seconds per pair.

    A pair that a worker was lost to is tried once more. Belongs to one event loop.
    """

    def __init__(
        self,
        size: int | None = None,
        call_timeout: float = 60.0,
        python: str = sys.executable,
    ) -> None:
        command = (python, "-P", "-m", "cbench_server.scoring.worker")
        self._programs = ProgramPool(command, size, timeout=call_timeout)
        self._call_timeout = call_timeout

    async def assess(self, recipe: Recipe, original: Example, processed: Example) -> Assessment:
        """Apply an evaluator in a worker.

        Raises Unencodable if the pair cannot be sent, CannotRebuild if the
        worker cannot make the evaluator, and EvaluatorBroken if the evaluator
        raises something or two workers are lost to it.
        """
        name = recipe.evaluator
        request = self._request(recipe, original, processed)
        losses: list[Lost] = []
        while len(losses) < 2:
            try:
                reply = await self._programs.exchange(request)
            except Lost as lost:
                losses.append(lost)
                _log.warning('a worker was lost to evaluator "%s": it %s', name, lost)
            else:
                return _assessment(name, msgspec.msgpack.decode(reply, type=Reply))
        raise Unscorable(f'evaluator "{name}" lost two workers: one {losses[0]}, one {losses[1]}')

    async def close(self) -> None:
        """Kill every worker and wait until none is left; pairs that wait are refused."""
        await self._programs.close()

    def _request(self, recipe: Recipe, original: Example, processed: Example) -> bytes:
        request = Request(recipe, self._call_timeout + _GRACE_S, original, processed)
        try:
            body = msgspec.msgpack.encode(request)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Unencodable(f"a pair cannot be sent to a worker: {error}") from error
        if len(body) > MAX_BODY:
            own = len(msgspec.msgpack.encode(original))
            kind = TooLarge if own < MAX_BODY // 2 else Unencodable
            raise kind(
                f"a pair of {len(body):,} bytes cannot be sent to a worker; the limit is "
                f"{MAX_BODY:,}"
            )
        return body


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
