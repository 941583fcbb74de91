"""Runs evaluators, each where it belongs, so that scoring never stalls the event loop."""

import asyncio
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cbench_server.assessing import (
    CannotRebuild,
    GaveUp,
    assess_here,
    assess_now,
    is_async,
    too_slow,
)
from cbench_server.errors import CallFailed, CbenchError, EvaluatorBroken, Unencodable
from cbench_server.evaluator_threads import EvaluatorThreads
from cbench_server.recipes import recipe_of
from cbench_server.results import Failure
from cbench_server.types import Assessment, Evaluator, Example, Scores
from cbench_server.workers import WorkerPool

_STACK_TRACE_LIMIT = 8_000


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """What the evaluators of a row had to say; details and failures by evaluator."""

    scores: Scores = field(default_factory=dict)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)


class Scoring:
    """Places each evaluator by its `placement`, and gives each a second chance.

    `inline` evaluators run on the event loop while the pair's text is below
    `inline_limit` characters; beyond, in a worker if one can rebuild them,
    else in a thread. An `io` evaluator gets `io_timeout` seconds, or what its
    `patience` says; None is for one whose waits all have limits of their own.
    Belongs to one event loop.
    """

    def __init__(
        self,
        workers: WorkerPool | None = None,
        inline_limit: int = 64 * 1024,
        *,
        threads: int = 8,
        thread_timeout: float = 60.0,
        io_timeout: float = 600.0,
    ) -> None:
        self._workers = workers or WorkerPool()
        self._inline_limit = inline_limit
        self._threads = EvaluatorThreads(threads, thread_timeout)
        self._thread_timeout = thread_timeout
        self._io_timeout = io_timeout

    def score_inline(
        self,
        evaluators: Sequence[Evaluator],
        original: Example,
        processed: Example,
        size: int | None = None,
    ) -> ScoredRow | None:
        """Do as `score_row` does, at once; None if some evaluator belongs elsewhere.

        `size` is that of the text of both sides, where the caller knows it.
        """
        chosen = applicable(evaluators, processed)
        for evaluator in chosen:
            if getattr(evaluator, "placement", "thread") != "inline" or is_async(evaluator):
                return None
        if size is None:
            size = _text_size(original) + _text_size(processed)
        if size > self._inline_limit:
            return None
        row = ScoredRow()
        for evaluator in chosen:
            try:
                try:
                    assessment = assess_now(evaluator, original, processed)
                except Exception:
                    assessment = assess_now(evaluator, original, processed)
            except Exception as error:
                row.failures[evaluator.name] = _failure(evaluator, error)
            else:
                _record(row, evaluator, assessment)
        return row

    async def score_row(
        self, evaluators: Sequence[Evaluator], original: Example, processed: Example
    ) -> ScoredRow:
        """Apply evaluators in their order, a later one overwriting equal scores.

        One that fails twice is listed in `failures`; the others' scores stand.
        """
        row = ScoredRow()
        for evaluator in applicable(evaluators, processed):
            try:
                assessment = await self.assess(evaluator, original, processed)
            except Exception as error:
                row.failures[evaluator.name] = _failure(evaluator, error)
            else:
                _record(row, evaluator, assessment)
        return row

    async def assess(
        self, evaluator: Evaluator, original: Example, processed: Example
    ) -> Assessment:
        """Apply one evaluator; raises EvaluatorBroken if its machinery fails twice."""
        try:
            try:
                return await self._attempt(evaluator, original, processed)
            except GaveUp:
                raise
            except Exception:
                return await self._attempt(evaluator, original, processed)
        except CbenchError:
            raise
        except Exception as error:
            raise EvaluatorBroken(_sentence(evaluator, error)) from error

    async def close(self) -> None:
        """Stop the workers and let the threads end."""
        self._threads.close()
        await self._workers.close()

    async def _attempt(
        self, evaluator: Evaluator, original: Example, processed: Example
    ) -> Assessment:
        pair = (evaluator, original, processed)
        placement = getattr(evaluator, "placement", "thread")
        if placement == "io" and is_async(evaluator):
            patience = getattr(evaluator, "patience", self._io_timeout)
            return await self._await(*pair, timeout=patience)
        if placement == "worker":
            return await self._in_worker(*pair)
        if placement == "inline":
            if _text_size(original) + _text_size(processed) <= self._inline_limit:
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
            async with asyncio.timeout(timeout) as limit:
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


def applicable(evaluators: Sequence[Evaluator], processed: Example) -> Sequence[Evaluator]:
    """Leave out those that read a response where a system returned only a context.

    An evaluator says what it reads in `reads`; one that does not say always runs.
    """
    if processed.get("response") is not None or processed.get("context") is None:
        return evaluators
    return [one for one in evaluators if getattr(one, "reads", "") != "response"]


def _text_size(example: Example) -> int:
    return sum([len(value) for value in example.values() if isinstance(value, str)])


def _record(row: ScoredRow, evaluator: Evaluator, assessment: Assessment) -> None:
    row.scores.update(assessment.scores)
    if assessment.details:
        row.details[evaluator.name] = assessment.details


def _failure(evaluator: Evaluator, error: Exception) -> Failure:
    stack_trace = "".join(traceback.format_exception(error))[-_STACK_TRACE_LIMIT:]
    if isinstance(error, CbenchError):
        reason, message = error.reason, str(error)
    else:
        reason, message = EvaluatorBroken.reason, _sentence(evaluator, error)
    retryable = isinstance(error, CallFailed) and error.failure.retryable
    return Failure("evaluator", reason, message, 2, retryable, stack_trace)


def _sentence(evaluator: Evaluator, error: Exception) -> str:
    return f'evaluator "{evaluator.name}" raised {type(error).__name__}: {error}'
