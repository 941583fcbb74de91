"""Placement of evaluators: each runs where it belongs, and none stalls the event loop."""

import copy
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import Any

from cbench_server.clocks.standstill import time_awake
from cbench_server.contract import info_of
from cbench_server.errors import (
    EXITS,
    CallFailed,
    CbenchError,
    ComponentAway,
    EvaluatorBroken,
    RunFailed,
    Unencodable,
    said,
)
from cbench_server.limits import LONG_TEXT, text_size
from cbench_server.results import Failure
from cbench_server.scoring.assessment import (
    CannotRebuild,
    GaveUp,
    TooLarge,
    Unscorable,
    assess_here,
    assess_now,
    checked,
    is_async,
    is_context_only,
    is_name,
    method_of,
    too_slow,
    without_context,
)
from cbench_server.scoring.recipe import recipe_of
from cbench_server.scoring.threads import EvaluatorThreads
from cbench_server.scoring.workers import WorkerPool, Workers
from cbench_server.types import Assessment, Evaluator, Example, Scores

_STACK_TRACE_LIMIT = 8_000

Through = Callable[[str, Callable[[], Awaitable[Assessment]]], Awaitable[Assessment]]
"""Asks one evaluator, named for a person, until it is there."""


@dataclass(slots=True)
class ScoredRow:
    """What the evaluators of a row said; details and failures by evaluator."""

    scores: Scores = field(default_factory=dict)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)


class Scoring:
    """Places each evaluator by its `placement`, and gives each a second chance.

    `inline` evaluators run on the event loop while the pair's text is below
    `inline_limit` characters; beyond, in a worker if one can rebuild them,
    else in a thread. An `io` evaluator gets `io_timeout` seconds, or what its
    `patience` says; None is for one that limits all its waits itself.
    Belongs to one event loop.
    """

    def __init__(
        self,
        workers: Workers | None = None,
        inline_limit: int = LONG_TEXT,
        *,
        threads: int = 8,
        thread_timeout: float = 60.0,
        io_timeout: float = 600.0,
    ) -> None:
        self._workers: Workers = workers or WorkerPool()
        self._inline_limit = inline_limit
        self._threads = EvaluatorThreads(threads, thread_timeout)
        self._thread_timeout = thread_timeout
        self._io_timeout = io_timeout
        self._inline: dict[tuple[int, ...], tuple[Any, InlineScoring | None]] = {}
        self._through: Through | None = None

    @property
    def at_once(self) -> int:
        """How many pairs other machines can have at once; 0 where there are none."""
        return self._workers.at_once

    def inline(self, evaluators: Sequence[Evaluator]) -> "InlineScoring | None":
        """Prepare evaluators that all run on the loop itself; None if one belongs elsewhere."""
        key = tuple(map(id, evaluators))
        if key not in self._inline:
            chosen = [
                each
                for each in evaluators
                if info_of(each).placement == "inline" and not is_async(each)
            ]
            # The evaluators are kept, so that no others get their ids.
            is_whole = len(chosen) == len(evaluators)
            limit = min(map(self._limit_of, evaluators), default=self._inline_limit)
            made = InlineScoring(evaluators, limit) if is_whole else None
            self._inline[key] = (tuple(evaluators), made)
        return self._inline[key][1]

    async def score_row(
        self,
        evaluators: Sequence[Evaluator],
        original: Example,
        processed: Example,
        *,
        tells_context: bool = True,
    ) -> ScoredRow:
        """Apply evaluators in their order, a later one overwriting equal scores.

        One that fails twice is listed in `failures`; the others' scores stand. Those that read the
        context do not get one that says nothing of what the system left of it.
        """
        inline = self.inline(evaluators)
        if inline is not None and text_size(original) + text_size(processed) <= inline.limit:
            return inline.score(original, processed, tells_context=tells_context)
        row = ScoredRow()
        untold = processed if tells_context else without_context(processed)
        for evaluator in applicable(evaluators, processed):
            given = untold if info_of(evaluator).reads == "context" else processed
            try:
                assessment = await self._patiently(evaluator, original, given)
            except RunFailed:
                raise
            except Exception as error:
                _record_failure(row, evaluator, error)
            else:
                _record(row, evaluator, assessment)
        return row

    async def _patiently(
        self, evaluator: Evaluator, original: Example, processed: Example
    ) -> Assessment:
        if self._through is None:
            return await self.assess(evaluator, original, processed)
        who = f'evaluator "{evaluator.name}"'
        return await self._through(who, lambda: self.assess(evaluator, original, processed))

    def through(self, through: Through) -> "Scoring":
        """Return the same for one run, which waits for evaluators that are away."""
        view = copy.copy(self)
        view._through = through
        return view

    async def assess(
        self, evaluator: Evaluator, original: Example, processed: Example
    ) -> Assessment:
        """Apply one evaluator; raises EvaluatorBroken if its machinery fails twice."""
        if not applicable([evaluator], processed):
            return Assessment({})
        try:
            try:
                return await self._attempt(evaluator, original, processed)
            except (GaveUp, ComponentAway):
                raise
            except Exception:
                return await self._attempt(evaluator, original, processed)
        except CbenchError:
            raise
        except Exception as error:
            raise EvaluatorBroken(_sentence(evaluator, error)) from error

    def _limit_of(self, evaluator: Evaluator) -> int:
        own = info_of(evaluator).inline_limit
        return self._inline_limit if own is None else min(own, self._inline_limit)

    async def close(self) -> None:
        """Stop the workers and let the threads end."""
        self._threads.close()
        await self._workers.close()

    async def _attempt(
        self, evaluator: Evaluator, original: Example, processed: Example
    ) -> Assessment:
        pair = (evaluator, original, processed)
        said = info_of(evaluator)
        placement = said.placement
        if said.runs_programs and self._workers.takes_programs:
            return await self._in_worker(*pair)
        if placement == "io" and is_async(evaluator):
            limit = None if said.has_own_limits else said.timeout or self._io_timeout
            return await self._await(*pair, timeout=limit)
        if placement == "worker":
            return await self._in_worker(*pair)
        if placement == "inline":
            if text_size(original) + text_size(processed) <= self._limit_of(evaluator):
                if is_async(evaluator):
                    return await self._await(*pair, timeout=self._thread_timeout)
                return assess_now(*pair)
            try:
                return await self._in_worker(*pair)
            except (CannotRebuild, Unencodable):
                pass  # The evaluator, or the pair, cannot leave this process.
        return await self._in_thread(*pair)

    async def _await(
        self,
        evaluator: Evaluator,
        original: Example,
        processed: Example,
        *,
        timeout: float | None,
    ) -> Assessment:
        try:
            async with time_awake(timeout) as limit:
                return await assess_here(evaluator, original, processed)
        except TimeoutError as error:
            if timeout is not None and limit.expired():
                raise GaveUp(too_slow(evaluator.name, timeout)) from error
            raise

    async def _in_thread(
        self, evaluator: Evaluator, original: Example, processed: Example
    ) -> Assessment:
        call = partial(assess_now, evaluator, original, processed)
        return await self._threads.run(evaluator.name, call)

    async def _in_worker(
        self, evaluator: Evaluator, original: Example, processed: Example
    ) -> Assessment:
        recipe = recipe_of(evaluator)
        if recipe is None:
            raise CannotRebuild(
                f'evaluator "{evaluator.name}" cannot be rebuilt in a worker. Put its class in a '
                "module, and give it an `options` attribute with what its constructor takes."
            )
        return await self._workers.assess(recipe, original, processed)


class InlineScoring:
    """Evaluators of one dataset that run on the loop, looked at once: what each is called by."""

    def __init__(self, evaluators: Sequence[Evaluator], limit: int) -> None:
        self.limit = limit
        """The most text of a pair, beyond which it is scored elsewhere."""
        self._all = [(each, method_of(each), info_of(each).reads) for each in evaluators]

    def score(
        self, original: Example, processed: Example, *, tells_context: bool = True
    ) -> ScoredRow:
        """Apply the evaluators as `Scoring.score_row` does."""
        row = ScoredRow()
        only_context = is_context_only(processed)
        untold = processed if tells_context else without_context(processed)
        for evaluator, call, reads in self._all:
            if only_context and reads == "response":
                continue
            given = untold if reads == "context" else processed
            try:
                said = call(original, given)
                if type(said) is dict and _are_scores(said):
                    row.scores.update(said)
                else:
                    _record(row, evaluator, checked(evaluator.name, said))
            except (Exception, *EXITS):
                try:
                    _record(row, evaluator, assess_now(evaluator, original, given))
                except Exception as error:
                    _record_failure(row, evaluator, error)
        return row


def _are_scores(said: Mapping[Any, Any]) -> bool:
    """Whether all are named finite floats, which need no further check."""
    for name, value in said.items():
        if type(value) is not float or type(name) is not str or not isfinite(value):
            return False
        if not is_name(name):
            return False
    return True


def applicable(evaluators: Sequence[Evaluator], processed: Example) -> Sequence[Evaluator]:
    """Leave out those that read a response where a system returned only a context.

    An evaluator says what it reads in `reads`; one that does not say always runs.
    """
    if not is_context_only(processed):
        return evaluators
    return [one for one in evaluators if info_of(one).reads != "response"]


def _record(row: ScoredRow, evaluator: Evaluator, assessment: Assessment) -> None:
    row.scores.update(assessment.scores)
    if assessment.details:
        row.details[evaluator.name] = assessment.details


def _record_failure(row: ScoredRow, evaluator: Evaluator, error: Exception) -> None:
    row.failures[evaluator.name] = _failure(evaluator, error)
    if isinstance(error, GaveUp) and error.details:
        row.details[evaluator.name] = dict(error.details)


def _failure(evaluator: Evaluator, error: Exception) -> Failure:
    stack_trace = ""
    if not isinstance(error, CbenchError) or error.__cause__ is not None:
        stack_trace = "".join(traceback.format_exception(error))[-_STACK_TRACE_LIMIT:]
    if isinstance(error, CbenchError):
        reason, message = error.reason, str(error)
    else:
        reason, message = EvaluatorBroken.reason, _sentence(evaluator, error)
    retryable = isinstance(error, CallFailed) and error.failure.retryable
    # A judge that takes too long is at fault itself; it says so by another error.
    origin = "system" if isinstance(error, Unscorable | TooLarge) else "evaluator"
    return Failure(origin, reason, message, 2, retryable, stack_trace)


def _sentence(evaluator: Evaluator, error: Exception) -> str:
    return f'evaluator "{evaluator.name}" raised {said(error)}'
