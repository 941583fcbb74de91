"""Steps that hold the event loop: every evaluator that runs there, and every parser it calls."""

import contextlib
import functools
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from cbench_server.contract import info_of
from cbench_server.evaluators import EVALUATORS
from cbench_server.evaluators.inputs import strip_thinking
from cbench_server.evaluators.judge import choices, ratings, yes_no
from cbench_server.limits import LONG_TEXT, text_size
from cbench_server.models.chat_answer import Trouble, parse_reply, refusal, retry_after
from cbench_server.scoring.placement import Scoring
from cbench_server.texts import answers, boxes, chat_markup, pointers
from cbench_server.tokens import count_tokens

LONGEST_S = 0.050
"""CPU time for which one step may hold the loop."""
LENGTH = LONG_TEXT
"""Characters of a text, unless an evaluator leaves the loop earlier."""

ORIGINAL = {
    "id": "1",
    "context": "Paris is the capital of France. It lies on the Seine.",
    "question": "What is the capital of France?",
    "answer": "Paris",
    "correct_letter": "A",
    "choices": ["Paris", "Lyon", "Nice", "Lille"],
    "is_abstention": False,
    "evidence": ["Paris is the capital of France.", "the Seine"],
    "correct_answers": ["Paris is the capital", "It is Paris"],
    "incorrect_answers": ["Lyon is the capital", "It is Nice"],
    "resolved": True,
    "tools": [
        {"name": "f", "parameters": {"type": "dict", "properties": {"x": {"type": "integer"}}}}
    ],
    "ground_truth": [{"f": {"x": [1]}}],
}
"""One example that every evaluator has something to say about."""

Step = Callable[[str], object]


def steps() -> Iterator[tuple[str, Step]]:
    """Yield every step by name; each takes a text as hostile as it may be."""
    for name in EVALUATORS:
        if info_of(EVALUATORS[name]).placement == "inline":
            yield f"{name} on a response", functools.partial(_score, name, "response")
            yield f"{name} on a context", functools.partial(_score, name, "context")
            yield f"{name} on a reference", functools.partial(_score, name, "answer")
            yield f"{name} on all", functools.partial(_score, name, "all")
    for parse in (
        ratings.parse_rating,
        ratings.parse_bracketed,
        yes_no.parse_yes_no,
        choices.parse_choice,
        choices.parse_identifier,
        strip_thinking,
        answers.normalize_answer,
        answers.answer_tokens,
        boxes.last_boxes,
        chat_markup.messages_of,
        count_tokens,
        _pointers,
        _reply,
        _refusal,
        _retry_after,
    ):
        yield parse.__name__.lstrip("_"), parse


def cpu_seconds_afresh(step: Step, text: str) -> float:
    """Return the CPU time that a step takes, as if it had never seen the text.

    What is made once, such as a vocabulary or a pattern, is no text's fault; nor is a machine in
    need of memory, or of a cooler, so what takes long is tried again.
    """
    _warm(step)
    taken = _cpu_seconds(step, text)
    for _ in range(5):
        if taken <= LONGEST_S / 2:
            break
        # A pattern made of the text is made again, and only those of every text are kept.
        re.purge()
        _warm(step, again=True)
        taken = min(taken, _cpu_seconds(step, text))
    return taken


_warmed: set[int] = set()


def _warm(step: Step, *, again: bool = False) -> None:
    if again or id(step) not in _warmed:
        for text in ("Paris", "The answer is (A)."):
            step(text)
        _warmed.add(id(step))


def _cpu_seconds(step: Step, text: str) -> float:
    started = time.thread_time()
    step(text)
    return time.thread_time() - started


@functools.cache
def _scoring(name: str) -> tuple[Any, int]:
    inline = Scoring().inline([EVALUATORS[name]()])
    assert inline is not None
    return inline, inline.limit


def _score(name: str, field: str, text: str) -> None:
    inline, limit = _scoring(name)
    room = limit - text_size(ORIGINAL) - 300
    original, processed = dict(ORIGINAL), {"context": ORIGINAL["context"], "response": "Paris"}
    if field == "response":
        processed["response"] = text[:room]
    elif field == "context":
        # Without a response, which is when the context is looked at.
        processed = {"context": text[:room]}
    elif field == "answer":
        part = text[: room // 3]
        original |= {"answer": part, "evidence": [part], "correct_answers": [part]}
    else:
        part = text[: room // 5]
        original |= {"answer": part, "evidence": [part], "context": part, "question": part}
        processed = {"context": part}
    # What is longer is not scored on the loop.
    assert text_size(original) + text_size(processed) <= limit, name
    inline.score(original, processed)


def _pointers(text: str) -> None:
    pointers.count_pointers(text, "Paris is the capital of France.")


def _reply(text: str) -> None:
    with contextlib.suppress(Trouble):
        parse_reply(text.encode("utf-8", "replace"))


def _refusal(text: str) -> None:
    refusal(400, text, text.encode("utf-8", "replace"), now=0.0)


def _retry_after(text: str) -> None:
    # A header, whose length the HTTP library bounds.
    retry_after(text[:LONG_TEXT], 0.0)
