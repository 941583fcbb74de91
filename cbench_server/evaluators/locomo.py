"""LoCoMo: F1 of stemmed words, by the category of the question."""

import string
from collections import Counter
from functools import cache, lru_cache
from typing import Any

import regex

from cbench_server.errors import InvalidInput
from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.metrics.quality import f1_of_overlap, shared_tokens
from cbench_server.types import Example, Placement, Scores

_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
# The official script uses this package, whose words include combining marks.
_LEFT_OUT = regex.compile(r"\b(?:a|an|the|and)\b")
_CATEGORIES = {"1": "multi_hop", "2": "temporal", "3": "open_domain", "4": "single_hop"}
_ADVERSARIAL = "adversarial"
_FIELDS = ("category", "question_type", "type")
_REFUSALS = ("no information available", "not mentioned")


class LoCoMo(ResponseEvaluator):
    """Gives `locomo_f1`, by the rule of the question's category.

    The category is the row's `category`, `question_type` or `type`: a number
    of LoCoMo's or the name it has here. A question with `is_abstention` is
    adversarial: it scores 1.0 if the response says that there is no answer.
    """

    name = "locomo"
    description = "F1 of stemmed words by category, as LoCoMo's own script computes it."
    # nltk's stemmer takes half a second to import.
    placement: Placement = "worker"
    required_fields = ("answer", "category")
    score_infos = (ScoreInfo("locomo_f1", "F1 by the rule of the question's category."),)

    def applies(self, original: Example) -> bool:
        """Whether the question has a category, and an answer unless it must not have one."""
        has_category = any(original.get(field) is not None for field in _FIELDS)
        return bool(original.get("is_abstention")) or (has_category and bool(references(original)))

    def score(self, original: Example, processed: Example) -> Scores:
        category = _category_of(original)
        response = self.response(processed)
        if category == _ADVERSARIAL:
            lowered = response.lower()
            return {"locomo_f1": float(any(words in lowered for words in _REFUSALS))}
        expected = references(original)
        if not expected or category is None:
            return {}
        return {"locomo_f1": max(_f1(response, reference, category) for reference in expected)}


def _category_of(original: Example) -> str | None:
    if original.get("is_abstention"):
        return _ADVERSARIAL
    for field in _FIELDS:
        if (given := original.get(field)) is not None:
            name = _CATEGORIES.get(str(given), str(given))
            if str(given) == "5" or name == _ADVERSARIAL:
                return _ADVERSARIAL
            if name in _CATEGORIES.values():
                return name
            raise InvalidInput(
                f'LoCoMo has no category "{given}"; {field} should be 1 to 5, or one of '
                f"{', '.join([*_CATEGORIES.values(), _ADVERSARIAL])}"
            )
    return None


def _f1(response: str, reference: str, category: str) -> float:
    if category == "open_domain":
        reference = reference.partition(";")[0]
    if category != "multi_hop":
        return _overlap(_stems(response), _stems(reference))
    given = [_stems(part) for part in dict.fromkeys(response.split(","))]
    wanted = [_stems(part) for part in reference.split(",")]
    return sum(max(_overlap(one, other) for one in given) for other in wanted) / len(wanted)


def _overlap(given: list[str], wanted: list[str]) -> float:
    return f1_of_overlap(shared_tokens(Counter(given), wanted), len(given), len(wanted))


def _stems(text: str) -> list[str]:
    plain = text.lower().translate(_DELETE_PUNCTUATION)
    return [_stem(word) for word in _LEFT_OUT.sub(" ", plain).split()]


@cache
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return str(_stemmer().stem(word))
