"""Assessments: how an evaluator is called in this thread, and checks of what it says."""

import asyncio
import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from numbers import Real
from types import MappingProxyType
from typing import Any

from cbench_server.contract import optional_method
from cbench_server.errors import EvaluatorBroken, Unencodable, contained
from cbench_server.limits import MAX_DETAILS, MAX_SCORE_NAME
from cbench_server.texts.plain import encode_fields
from cbench_server.types import Assessment, Evaluator, Example, Scores


class GaveUp(EvaluatorBroken):
    """Trying once more would not help: that was done already, or took all the time there is."""

    details: Mapping[str, Any] = MappingProxyType({})
    """What is kept with the row all the same: what a model was asked in vain, and replied."""


class Overflowed(GaveUp):
    """What an evaluator's model was asked does not fit its window."""

    reason = "CONTEXT_OVERFLOW"


class Unscorable(GaveUp):
    """What a system returned took all the time there is, or took its scorer down, twice."""

    reason = "OUTPUT_UNSCORABLE"


class TooLarge(Unencodable):
    """What a system returned does not fit into a message to a worker."""

    reason = "OUTPUT_TOO_LARGE"


class CannotRebuild(GaveUp):
    """The evaluator cannot be made in another process."""


def too_slow(evaluator: str, timeout: float) -> str:
    """Say that an evaluator used up its time."""
    return f'evaluator "{evaluator}" did not finish within {timeout:g} s'


def is_context_only(processed: Example) -> bool:
    """Whether a system returned a context and left answering to others."""
    if processed.get("response") is not None or processed.get("context") is None:
        return False
    return not processed.get("responses")


def without_context(processed: Example) -> Example:
    """Return what a system returned as if it had returned no context."""
    return {name: value for name, value in processed.items() if name != "context"}


def is_async(evaluator: Evaluator) -> bool:
    """Whether the evaluator's `assess` has to be awaited."""
    return inspect.iscoroutinefunction(optional_method(evaluator, "assess"))


def method_of(evaluator: Evaluator) -> Callable[[Example, Example], Any]:
    """Return what an evaluator is called by: `assess` where it has one, else `score`."""
    return optional_method(evaluator, "assess") or evaluator.score


def assess_now(evaluator: Evaluator, original: Example, processed: Example) -> Assessment:
    """Call `assess`, else `score`, and wait; a coroutine gets its own event loop."""
    if is_async(evaluator):
        return asyncio.run(assess_here(evaluator, original, processed))
    with _contained(evaluator):
        return checked(evaluator.name, method_of(evaluator)(original, processed))


async def assess_here(evaluator: Evaluator, original: Example, processed: Example) -> Assessment:
    """Await the evaluator's `assess` on this event loop."""
    assess: Any = evaluator.assess  # type: ignore[attr-defined] # the Protocol leaves it out
    with _contained(evaluator):
        return checked(evaluator.name, await assess(original, processed))


def _contained(evaluator: Evaluator) -> AbstractContextManager[None]:
    return contained(f'evaluator "{evaluator.name}"', EvaluatorBroken)


def checked(evaluator: str, said: Any) -> Assessment:
    """Return what an evaluator said as an Assessment, or raise EvaluatorBroken if it is not one.

    Anything with `scores` and `details` will do, since evaluators need import
    nothing of ours; so will a plain dict of scores.
    """
    if isinstance(said, Mapping):
        return Assessment(_numbers(evaluator, said))
    scores = getattr(said, "scores", None)
    if not isinstance(scores, Mapping):
        raise EvaluatorBroken(
            f'evaluator "{evaluator}" returned {type(said).__name__}; '
            "it should return a dict of scores"
        )
    details = dict(getattr(said, "details", None) or {})
    if details and len(encode_fields(details, "details.")) > MAX_DETAILS:
        raise EvaluatorBroken(
            f'evaluator "{evaluator}" gave details of more than {MAX_DETAILS:,} bytes'
        )
    return Assessment(_numbers(evaluator, scores), details)


def is_name(name: str) -> bool:
    """Whether a score may be called so."""
    return 0 < len(name) <= MAX_SCORE_NAME and name.isprintable()


def _numbers(evaluator: str, scores: Mapping[Any, Any]) -> Scores:
    numbers: Scores = {}
    for name, value in scores.items():
        if not isinstance(name, str):
            raise EvaluatorBroken(
                f'evaluator "{evaluator}" named a score {name!r}; names should be strings'
            )
        if not is_name(name):
            raise EvaluatorBroken(
                f'evaluator "{evaluator}" named a score {name!r:.100}; names should be texts of 1 '
                f"to {MAX_SCORE_NAME} characters that can be printed"
            )
        # Asking for the type first saves a microsecond on what nearly all scores are.
        is_number = type(value) is float or isinstance(value, Real)
        if not is_number or not math.isfinite(value):
            raise EvaluatorBroken(
                f'evaluator "{evaluator}" gave {value!r:.100} as "{name}"; it should be a number'
            )
        numbers[name] = float(value)
    return numbers
