"""Inputs of evaluators: the response as text, the references, and what a score is called."""

import functools
import re
from collections.abc import Callable
from typing import Any

from cbench_server.scoring.assessment import is_context_only
from cbench_server.texts.answers import references
from cbench_server.types import Assessment, Example, Placement, ScoreInfo, Scores

__all__ = [
    "ExplainingEvaluator",
    "ResponseEvaluator",
    "ScoreInfo",
    "answer_text",
    "expected_answers",
    "reference_text",
    "references",
    "response_text",
    "strip_thinking",
]

_TAG = re.compile(
    r"<(?P<close>/)?(?P<tag>think|thinking|thought|reasoning)>|<\|(?P<edge>begin|end)_of_thought\|>",
    re.IGNORECASE,
)


class ResponseEvaluator:
    """What evaluators of a response share: where they run, and their option."""

    version = "1"
    placement: Placement = "inline"
    reads = "response"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Have every door leave out a pair in which answering was left to others."""
        super().__init_subclass__(**kwargs)
        for name, nothing in (("score", dict), ("assess", lambda: Assessment({}))):
            if name in vars(cls):
                setattr(cls, name, _if_answered(vars(cls)[name], nothing))

    def __init__(self, *, strip_thinking: bool = True) -> None:
        self.options: dict[str, Any] = {"strip_thinking": strip_thinking}
        self._strip_thinking = strip_thinking

    def response(self, processed: Example) -> str:
        """Return the response as text, without thinking blocks if those are not wanted."""
        return response_text(processed, strip=self._strip_thinking)


def _if_answered(method: Callable[..., Any], nothing: Callable[[], Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def checked(self: Any, original: Example, processed: Example) -> Any:
        return nothing() if is_context_only(processed) else method(self, original, processed)

    return checked


class ExplainingEvaluator(ResponseEvaluator):
    """One whose `assess` gives details; `score` leaves them out."""

    def score(self, original: Example, processed: Example) -> Scores:
        return self.assess(original, processed).scores

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score a pair, with details."""
        raise NotImplementedError


def response_text(processed: Example, *, strip: bool) -> str:
    """Return the response, without thinking blocks if `strip`; none at all is an empty one."""
    return answer_text(processed.get("response"), strip=strip)


def answer_text(response: object, *, strip: bool) -> str:
    """Return one response as text, as `response_text` does."""
    text = "" if response is None else str(response)
    return strip_thinking(text) if strip else text


def expected_answers(original: Example) -> list[str]:
    """Return the references, or an `answer` that is blank where there are none.

    Evaluators that are asked about such a pair directly have an agreed value
    for it; in a run it does not count.
    """
    answer = original.get("answer")
    return references(original) or ([answer] if isinstance(answer, str) else [])


def reference_text(original: Example) -> str:
    """Return the accepted answers, one per line if there are several; empty if there are none."""
    found = [text for text in references(original) if text.strip()]
    if len(found) > 1:
        return "\n".join(f"- {text}" for text in found)
    return found[0] if found else ""


def strip_thinking(text: str) -> str:
    """Return the text without its thinking blocks; text that has none comes back unchanged.

    A closing tag that nothing opened ends a block that began with the text.
    A block at the start that is never closed takes all of the text: the model
    was cut off before it answered. An opening tag further on that is never
    closed is kept as it stands, since it may be the answer that speaks of it.
    """
    if "<" not in text:
        return text
    kept: list[str] = []
    position = 0
    opened_by = ""
    opened_at = 0
    found = False
    for tag in _TAG.finditer(text):
        kind = (tag["tag"] or "of_thought").lower()
        closes = bool(tag["close"]) or (tag["edge"] or "").lower() == "end"
        if not closes:
            if not opened_by:
                opened_by, opened_at = kind, tag.start()
            continue
        if opened_by == kind:
            kept.append(text[position:opened_at])
        elif opened_by:
            continue
        else:
            kept.clear()
        position, opened_by, found = tag.end(), "", True
    if opened_by and not "".join([*kept, text[position:opened_at]]).strip():
        return ""
    if not found:
        return text
    kept.append(text[position:])
    return "".join(kept).strip()
