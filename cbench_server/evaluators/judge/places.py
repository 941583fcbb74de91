"""Places in a whole prompt from a file: what stands where, by the names its authors use."""

import re
from collections.abc import Mapping, Sequence

from cbench_server.errors import InvalidInput
from cbench_server.evaluators.judge.conversation import Turn
from cbench_server.texts.chat_markup import messages_of

QUESTION, REFERENCE, RESPONSE = "QUESTION", "REFERENCE", "RESPONSE"
FIRST, SECOND = "RESPONSE A", "RESPONSE B"
_ANSWERS = {
    "question": QUESTION,
    "answer": REFERENCE,
    "gold_answer": REFERENCE,
    "response": RESPONSE,
    "generated_answer": RESPONSE,
}
_PAIRS = {"question": QUESTION, "instruction": QUESTION, "output_1": FIRST, "output_2": SECOND}
_NAME = re.compile(r"\{(\w+)\}")

# The prompts of MT-Bench by the names they have in FastChat, whose answers are responses.
FIRST_TURN, LATER_TURN = "single-v1", "single-v1-multi-turn"
_WITH_REFERENCE = {FIRST_TURN: "single-math-v1", LATER_TURN: "single-math-v1-multi-turn"}
_TURNS = {
    FIRST_TURN: ("question", "answer"),
    "single-math-v1": ("question", "answer", "ref_answer_1"),
    LATER_TURN: ("question_1", "answer_1", "question_2", "answer_2"),
    "single-math-v1-multi-turn": (
        *("question_1", "answer_1", "ref_answer_1"),
        *("question_2", "answer_2", "ref_answer_2"),
    ),
}
# Where FastChat's judge is shown a reference.
_REFERENCED = frozenset({"math", "reasoning", "coding"})


def check_answers(kind: str, text: str, *, is_pairwise: bool, shows_reference: bool) -> None:
    """Raise InvalidInput for a prompt that does not say where something stands."""
    names = _PAIRS if is_pairwise else _ANSWERS
    named = {names.get(name) for name in _NAME.findall(text)}
    for what in dict.fromkeys(names.values()):
        if what not in named and (shows_reference or what != REFERENCE):
            known = " or ".join(f"{{{name}}}" for name, each in names.items() if each == what)
            raise InvalidInput(f'the prompt "{kind}" does not say where {known} stands')


def check_turns(templates: Mapping[str, str]) -> None:
    """Raise InvalidInput unless these are prompts for the turns of a conversation."""
    known = ", ".join(_TURNS)
    for kind in (FIRST_TURN, LATER_TURN):
        if kind not in templates:
            raise InvalidInput(f'the prompts for pack "mt-bench" lack {kind}; there are: {known}')
    for kind, text in templates.items():
        if kind not in _TURNS:
            raise InvalidInput(f'pack "mt-bench" has no prompt "{kind}"; there are: {known}')
        for name in _TURNS[kind]:
            if f"{{{name}}}" not in text:
                raise InvalidInput(f'the prompt "{kind}" does not say where {{{name}}} stands')


def filled(template: str, texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the messages of a prompt with texts, by what they are, in their places.

    The messages are told apart first, so that no text can begin one.
    """
    names = _PAIRS if FIRST in texts else _ANSWERS
    return _put(template, {name: texts.get(what, "") for name, what in names.items()})


def turn_messages(
    templates: Mapping[str, str], turns: Sequence[Turn], category: object
) -> list[tuple[str, str]]:
    """Return the messages that ask for a grade of the last of these turns."""
    kind = FIRST_TURN if len(turns) == 1 else LATER_TURN
    is_shown = turns[-1].reference and (category in (None, "") or category in _REFERENCED)
    if is_shown and _WITH_REFERENCE[kind] in templates:
        kind = _WITH_REFERENCE[kind]
    texts = {"question": turns[-1].question, "answer": turns[-1].response}
    for number, turn in enumerate((turns[0], turns[-1]), 1):
        texts |= {
            f"question_{number}": turn.question,
            f"answer_{number}": turn.response,
            f"ref_answer_{number}": turn.reference,
        }
    return _put(templates[kind], texts)


def _put(template: str, texts: Mapping[str, str]) -> list[tuple[str, str]]:
    def fill(place: re.Match[str]) -> str:
        return texts.get(place[1], place[0])

    return [(role, _NAME.sub(fill, said)) for role, said in messages_of(template)]
