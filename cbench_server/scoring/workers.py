"""Workers: programs that score pairs, and may be killed without harm.

Those here are of this machine; cluster/ has others behind the same port.
"""

import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import Protocol

import msgspec

from cbench_server.errors import EvaluatorBroken, Unencodable
from cbench_server.scoring.assessment import CannotRebuild, TooLarge, Unscorable, checked
from cbench_server.scoring.messages import Reply, Request
from cbench_server.scoring.programs import MAX_BODY, Lost, ProgramPool
from cbench_server.scoring.recipe import Recipe
from cbench_server.types import Assessment, Example

_log = logging.getLogger(__name__)

_GRACE_S = 5.0


class Workers(Protocol):
    """Where pairs are scored apart from this process."""

    takes_programs: bool
    """Whether evaluators that run programs of systems belong there as well."""
    at_once: int
    """How many pairs other machines can have at once; 0 where there are none."""

    async def start(self) -> None:
        """Make ready what takes long to; does not wait for it."""
        ...

    async def assess(self, recipe: Recipe, original: Example, processed: Example) -> Assessment:
        """Apply an evaluator.

        Raises Unencodable if the pair cannot be sent, CannotRebuild if the
        evaluator cannot be made there, EvaluatorBroken if it raises something
        or takes its worker down twice, and ComponentAway while nobody is there.
        """
        ...

    async def close(self) -> None:
        """End every worker and wait until none is left; pairs that wait are refused."""
        ...


class WorkerPool:
    """Up to `size` workers, each given `call_timeout` seconds per pair, and one for who has none.

    A pair that a worker was lost to is tried once more. Belongs to one event loop.
    """

    takes_programs = False
    at_once = 0

    def __init__(
        self,
        size: int | None = None,
        call_timeout: float = 60.0,
        python: str = sys.executable,
    ) -> None:
        command = (python, "-P", "-m", "cbench_server.scoring.worker")
        self._programs = ProgramPool(command, size, timeout=call_timeout, spare=1)
        self._call_timeout = call_timeout

    async def start(self) -> None:
        """Do nothing: programs are started when they are needed."""

    async def assess(self, recipe: Recipe, original: Example, processed: Example) -> Assessment:
        """Apply an evaluator in a worker."""
        name = recipe.evaluator
        # Packed when its turn comes: pairs that wait would be held in memory twice.
        pack = partial(request_of, recipe, original, processed, self._call_timeout)
        return assessment_of(name, await self.exchange(name, pack))

    async def exchange(self, name: str, request: bytes | Callable[[], bytes]) -> bytes:
        """Have a packed pair scored; raises Unscorable if two workers are lost to it."""
        losses: list[Lost] = []
        while len(losses) < 2:
            try:
                return await self._programs.exchange(request)
            except Lost as lost:
                losses.append(lost)
                _log.warning('a worker was lost to evaluator "%s": it %s', name, lost)
        raise Unscorable(f'evaluator "{name}" lost two workers: one {losses[0]}, one {losses[1]}')

    async def close(self) -> None:
        """Kill every worker and wait until none is left; pairs that wait are refused."""
        await self._programs.close()


def request_of(recipe: Recipe, original: Example, processed: Example, call_timeout: float) -> bytes:
    """Pack a pair; raises Unencodable if it cannot be sent."""
    request = Request(recipe, call_timeout + _GRACE_S, original, processed)
    try:
        body = msgspec.msgpack.encode(request)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unencodable(f"a pair cannot be sent to a worker: {error}") from error
    if len(body) > MAX_BODY:
        own = len(msgspec.msgpack.encode(original))
        kind = TooLarge if own < MAX_BODY // 2 else Unencodable
        raise kind(
            f"a pair of {len(body):,} bytes cannot be sent to a worker; the limit is {MAX_BODY:,}"
        )
    return body


class _RemoteTraceback(Exception):
    """Stands as the cause of what was raised in a worker, to show where."""


def assessment_of(name: str, packed: bytes) -> Assessment:
    """Unpack what came of a pair; raises what the evaluator raised."""
    reply = msgspec.msgpack.decode(packed, type=Reply)
    if not reply.built:
        message = f'evaluator "{name}" cannot be rebuilt in a worker: {reply.error}'
        raise CannotRebuild(message) from _RemoteTraceback(reply.stack_trace)
    if reply.error:
        message = f'evaluator "{name}" failed in a worker: {reply.error}'
        raise EvaluatorBroken(message) from _RemoteTraceback(reply.stack_trace)
    return checked(name, reply)
