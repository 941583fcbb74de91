"""Leaks: what a system is sent that tells the answer, or how it will be judged."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cbench_server.datasets.withheld import Withheld
from cbench_server.texts.answers import normalize_answer, references
from cbench_server.types import Example

# Where the reference itself is expected to be, or is what is asked about.
_SOURCES = ("context", "turns", "question", "id", "dataset", "choices", "options")
_TELLING = ("category", "question_type", "qa_type", "type", "rubric", "is_abstention", "reference")
_MARKERS = re.compile(r"(?:^|[\s_-])(?:has_answer|answer_[0-9a-f]+|needle|_abs)(?:$|[\s_-])|_abs$")
_SHORTEST = 4


def leaks_in(examples: Sequence[Example], withheld: Iterable[str], *, is_memory: bool) -> list[str]:
    """Say what of these examples a system sees that it should not.

    A memory system is sent the turns and the question, and nothing else.
    """
    hidden, of_turns = Withheld(withheld), Withheld.of_turns(withheld)
    found: dict[str, int] = {}
    for example in examples:
        seen = {name: example[name] for name in example if name not in hidden}
        if is_memory:
            seen = {name: seen[name] for name in ("turns", "question") if name in seen}
            seen["turns"] = [_without(turn, of_turns) for turn in seen.get("turns") or []]
        for what in dict.fromkeys(_leaks(example, seen)):
            found[what] = found.get(what, 0) + 1
    total = len(examples)
    return [
        f"Systems see {what} on {count:,} of {total:,} examples." for what, count in found.items()
    ]


def _leaks(example: Example, seen: Example) -> Iterator[str]:
    for name in _TELLING:
        if seen.get(name) not in (None, "", [], False):
            yield f'the field "{name}", which tells how the answer is judged,'
    accepted = [normalize_answer(text) for text in references(example)]
    for name, value in seen.items():
        if name in _SOURCES or name in _TELLING or not isinstance(value, str):
            continue
        text = f" {normalize_answer(value)} "
        if any(len(answer) >= _SHORTEST and f" {answer} " in text for answer in accepted):
            yield f'the reference in the field "{name}"'
    if _MARKERS.search(str(seen.get("id", ""))):
        yield "an id that marks the answer"
    if any(_is_marked(turn) for turn in seen.get("turns") or []):
        yield "turns that are marked as holding the answer"


def _without(turn: Any, withheld: Withheld) -> Any:
    if not isinstance(turn, dict):
        return turn
    return {name: value for name, value in turn.items() if name not in withheld}


def _is_marked(turn: Any) -> bool:
    if not isinstance(turn, dict):
        return False
    names = {"has_answer", "is_evidence"} & set(turn)
    return bool(names) or bool(_MARKERS.search(str(turn.get("session", ""))))
