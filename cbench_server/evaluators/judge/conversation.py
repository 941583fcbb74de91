"""Turns of a conversation, each with its question, response and reference."""

from dataclasses import dataclass
from typing import Any

from cbench_server.evaluators.inputs import answer_text, references, response_text
from cbench_server.types import Example


@dataclass(frozen=True)
class Turn:
    """One exchange; the reference is empty where there is none."""

    question: str
    response: str
    reference: str = ""


def turns_of(original: Example, processed: Example, *, strip: bool) -> list[Turn]:
    """Return the turns of an example; a system that gave only its last response lacks the others.

    References stand in `reference`, one for each turn, or are those of the example, which
    are the last turn's.
    """
    questions = _questions(original)
    given = processed.get("turn_responses")
    if isinstance(given, list | tuple):
        responses = [answer_text(response, strip=strip) for response in given]
    else:
        responses = [""] * (len(questions) - 1) + [response_text(processed, strip=strip)]
    responses += [""] * (len(questions) - len(responses))
    known = original.get("reference")
    by_turn = [str(text or "") for text in known] if isinstance(known, list | tuple) else []
    by_turn = by_turn[: len(questions)] + [""] * (len(questions) - len(by_turn))
    if not any(by_turn) and (found := references(original)):
        by_turn[-1] = found[0]
    return [
        Turn(question, response, reference)
        for question, response, reference in zip(questions, responses, by_turn, strict=False)
    ]


def _questions(original: Example) -> list[str]:
    turns = original.get("turns")
    if isinstance(turns, list | tuple) and turns:
        return [_said(turn) for turn in turns if _is_asked(turn)]
    question = original.get("question")
    if question is None:
        question = original.get("context")
    return [] if question is None else [str(question)]


def _is_asked(turn: Any) -> bool:
    return not isinstance(turn, dict) or turn.get("role", "user") == "user"


def _said(turn: Any) -> str:
    return str(turn.get("content") or "") if isinstance(turn, dict) else str(turn)
