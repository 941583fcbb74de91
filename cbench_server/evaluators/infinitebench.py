"""InfiniteBench: each row by the rule of its task."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from cbench_server.errors import InvalidInput, UnknownName
from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo
from cbench_server.evaluators.longbench.chinese import plain_chinese
from cbench_server.evaluators.rouge.scores import RougeText, rouge_lsum
from cbench_server.metrics.quality import f1_of_overlap, f1_score, shared_tokens
from cbench_server.types import Example, Placement, Scores

Labels = Sequence[Any]

_INTEGER = re.compile("[0-9]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_SPACES = re.compile("  +")
_WORD_ENDS = str.maketrans(dict.fromkeys("\n:\"'.,?!{}", " "))
_CODE_WORD_ENDS = str.maketrans(dict.fromkeys("\n.`'\":", " "))
_DEBUG_SPACES = re.compile("[\n`'\"*-]|[Oo]ption")
_CHOICE_SPACES = str.maketrans(dict.fromkeys("\n\"'.,?!{}", " "))
_DEBUG_CUES = ("answer is:", "is:", "answer:", "correct option is:")
_CHOICE_CUES = ("answer is:", "answer:", "answer is", "option is")
_LETTERS = "ABCD"
_MAX_DIGITS = 4300
"""Digits beyond which Python does not read a number, and no label has as many."""


class InfiniteBench(ResponseEvaluator):
    """Gives `infinitebench_score`: what InfiniteBench's rule for the row's task gives.

    The task is that of the constructor, else the row's field `task`. The labels
    are the row's `answers`, else its `answer`. `skip_first_number` is for
    math_calc, where GPT-4's prompt makes a model begin with a number of the question.
    """

    name = "infinitebench"
    description = "The rule that InfiniteBench has for the row's task."
    # Summaries take more than linear time.
    placement: Placement = "worker"
    required_fields: tuple[str, ...] = ("answer",)
    score_infos = (ScoreInfo("infinitebench_score", "What the rule for the task gives."),)

    def __init__(
        self,
        *,
        task: str | None = None,
        skip_first_number: bool = False,
        strip_thinking: bool = True,
    ) -> None:
        super().__init__(strip_thinking=strip_thinking)
        self.options = {"task": task, "skip_first_number": skip_first_number, **self.options}
        self._task = None if task is None else _known(task)
        self._skip = int(skip_first_number)
        if self._task is None:
            self.required_fields = ("answer", "task")
        elif self._task != "longbook_sum_eng":
            self.placement = "inline"

    def score(self, original: Example, processed: Example) -> Scores:
        labels = _labels(original)
        given = self._task or original.get("task")
        if not labels or given is None:
            return {}
        task = _known(str(given))
        response = self.response(processed)
        if task == "math_calc":
            return {"infinitebench_score": _math_calc(response, labels, self._skip)}
        if task in _CHOICE_TASKS:
            labels = _with_letter(labels, original)
        return {"infinitebench_score": float(_RULES[task](response, labels))}


def _first_integer(response: str, labels: Labels) -> bool:
    found = _INTEGER.search(response)
    return str(labels[0]) == (found[0] if found else "")


def _kv_retrieval(response: str, labels: Labels) -> bool:
    return str(labels[0]) in response.translate(_WORD_ENDS).split()


def _code_run(response: str, labels: Labels) -> bool:
    words = response.translate(_CODE_WORD_ENDS).split()
    wanted = _as_number(labels[0], int)
    return bool(words) and wanted is not None and _as_number(words[-1], int) == wanted


def _code_debug(response: str, labels: Labels) -> bool:
    function, letter = labels
    response = response.strip()
    if response[:2] in (f"{letter}.", f"{letter}:"):
        return True
    text = _SPACES.sub(" ", _DEBUG_SPACES.sub(" ", response))
    said = _after_cue(text, _DEBUG_CUES)
    return said is not None and said.startswith((letter, function))


def _choice(response: str, labels: Labels) -> bool:
    response = response.strip()
    if not response:
        return False
    if response[0] in _LETTERS:
        return response[0] in labels
    if response in labels:
        return True
    text = _SPACES.sub(" ", response.translate(_CHOICE_SPACES))
    said = _after_cue(text, _CHOICE_CUES)
    if said is not None:
        return said.startswith(tuple(labels))
    letter = next((word for word in text.split() if word in _LETTERS), None)
    return letter in labels


def _after_cue(text: str, cues: Sequence[str]) -> str | None:
    """Return what follows the first cue that is there and the character after it, else None."""
    for cue in cues:
        _, found, rest = text.partition(cue)
        if found:
            return rest[1:]
    return None


def _dialogue(response: str, labels: Labels) -> bool:
    words = response.translate(_WORD_ENDS).split()
    return str(labels[0]) in {word.upper() for word in words}


def _math_find(response: str, labels: Labels) -> bool:
    found = _NUMBER.search(response)
    if found is None:
        return False
    label = labels[0]
    if isinstance(label, str):
        whole = _as_number(label, int)
        label = _as_number(label, float) if whole is None else whole
    return label is not None and _as_number(found[0], type(label)) == label


def _math_calc(response: str, labels: Labels, skipped: int) -> float:
    wanted = labels[0] if isinstance(labels[0], list | tuple) else labels
    numbers = islice(_INTEGER.finditer(response), skipped, None)
    right = 0
    # There may be fewer numbers than labels.
    for label, number in zip(wanted, numbers, strict=False):
        if _as_number(number[0], int) != _as_number(label, int):
            break
        right += 1
    return right / len(wanted)


def _qa_english(response: str, labels: Labels) -> float:
    return max(f1_score(response, str(label)) for label in labels)


def _qa_chinese(response: str, labels: Labels) -> float:
    given = Counter(plain_chinese(response))
    length = given.total()
    wanted = [plain_chinese(str(label)) for label in labels]
    return max(f1_of_overlap(shared_tokens(given, each), length, len(each)) for each in wanted)


def _summary(response: str, labels: Labels) -> float:
    given = RougeText(response)
    return max(rouge_lsum(given, RougeText(str(label))) for label in labels)


def _as_number(value: Any, kind: type[int] | type[float]) -> float | None:
    try:
        return kind(value) if len(str(value)) <= _MAX_DIGITS else None
    except (TypeError, ValueError):
        return None


_RULES: dict[str, Callable[[str, Labels], float]] = {
    "kv_retrieval": _kv_retrieval,
    "kv_retrieval_prefix": _kv_retrieval,
    "kv_retrieval_both": _kv_retrieval,
    "passkey": _first_integer,
    "number_string": _first_integer,
    "code_run": _code_run,
    "code_debug": _code_debug,
    "longdialogue_qa_eng": _dialogue,
    "longbook_qa_eng": _qa_english,
    "longbook_sum_eng": _summary,
    "longbook_choice_eng": _choice,
    "longbook_qa_chn": _qa_chinese,
    "math_find": _math_find,
}
_CHOICE_TASKS = ("code_debug", "longbook_choice_eng")
_TASKS = (*_RULES, "math_calc")


def _known(task: str) -> str:
    if task not in _TASKS:
        raise UnknownName("InfiniteBench task", task, _TASKS)
    return task


def _labels(original: Example) -> Labels:
    """Return the labels as they are: math_calc's are numbers, and in order."""
    for field in ("answers", "answer"):
        given = original.get(field)
        labels = [*given] if isinstance(given, list | tuple) else [given]
        if labels := [label for label in labels if label is not None]:
            return labels
    return []


def _with_letter(labels: Labels, original: Example) -> tuple[str, str]:
    """Return the right option and its letter: the second label, or else by the row's choices."""
    option = str(labels[0])
    if len(labels) > 1 and str(labels[1]) in _LETTERS:
        return option, str(labels[1])
    if letter := original.get("correct_letter"):
        return option, str(letter)
    choices = [str(each) for each in original.get("choices") or ()]
    if option not in choices[: len(_LETTERS)]:
        raise InvalidInput(
            f'InfiniteBench label "{option[:100]}" has no letter: give the row two answers, the '
            "option and its letter, or correct_letter, or choices that have the option"
        )
    return option, _LETTERS[choices.index(option)]
