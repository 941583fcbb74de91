"""DROP: F1 and exact match over bags of spans, which are aligned so that they match best."""

import re
import string
from collections.abc import Sequence
from typing import NamedTuple

from cbench_server.evaluators.drop.alignment import best_alignment
from cbench_server.evaluators.inputs import (
    ResponseEvaluator,
    ScoreInfo,
    answer_text,
    expected_answers,
)
from cbench_server.types import Example, Scores

_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
_NUMBER_WORDS = frozenset({"inf", "infinity", "nan"})
_HOPELESS = 200
_TOKEN_END = re.compile("[ -]")


class _Span(NamedTuple):
    """A normalised span, the bag of its tokens, and those of them that are numbers."""

    text: str
    bag: frozenset[str]
    numbers: frozenset[str]


class Drop(ResponseEvaluator):
    """Gives `drop_f1` and `drop_em`, each the best over the annotators' answers.

    The answers are the row's `answer_spans`, a list of spans for each annotator;
    without it each reference is an answer of one span. A response is one span,
    or several if it is a list.
    """

    name = "drop"
    description = "F1 and exact match over aligned spans, as DROP's own script computes them."
    required_fields = ("answer",)
    # Each span is compared with each of the answer: up to here that takes 30 ms at most.
    inline_limit = 16_000
    score_infos = (
        ScoreInfo("drop_f1", "Mean F1 of the spans in their best alignment, in whole percent."),
        ScoreInfo("drop_em", "1.0 if all normalised spans are equal."),
    )

    def score(self, original: Example, processed: Example) -> Scores:
        answers = _answers(original)
        if not answers:
            return {}
        response = processed.get("response")
        parts = response if isinstance(response, list | tuple) else [response]
        # Each span of an answer can be met once, so of this many spans less than half a percent
        # is right, which rounds to nothing.
        if len(parts) >= _HOPELESS * max(map(len, answers)):
            return {"drop_f1": 0.0, "drop_em": 0.0}
        given = [_span(answer_text(each, strip=self._strip_thinking)) for each in parts]
        f1 = exact_match = 0.0
        for answer in answers:
            # An answer whose first span is blank counts for nothing.
            if answer[0].strip():
                wanted = [*map(_span, answer)]
                f1 = max(f1, _f1(given, wanted))
                if _texts(given) == _texts(wanted) and len(given) == len(wanted):
                    exact_match = 1.0
        return {"drop_f1": f1, "drop_em": exact_match}


def _answers(original: Example) -> list[list[str]]:
    given = original.get("answer_spans")
    if isinstance(given, list | tuple) and given:
        answers = [each if isinstance(each, list | tuple) else [each] for each in given]
        return [[str(span) for span in answer] for answer in answers if answer]
    return [[reference] for reference in expected_answers(original)]


def _span(text: str) -> _Span:
    """Read a span: lower case, no punctuation or articles, numbers as floats."""
    seen: dict[str, str] = {}
    tokens: list[str] = []
    for token in _TOKEN_END.split(text):
        if token not in seen:
            seen[token] = _normalized(token.lower())
        tokens.append(seen[token])
    text = " ".join([token for token in tokens if token])
    bag = frozenset(text.split())
    return _Span(text, bag, frozenset(filter(_as_number, bag)))


def _texts(spans: Sequence[_Span]) -> set[str]:
    return {span.text for span in spans}


def _normalized(token: str) -> str:
    plain = token.translate(_DELETE_PUNCTUATION)
    number = _as_number(token) or (plain != token and _as_number(plain))
    if number:
        return number
    if plain.isalnum():
        return "" if plain in _ARTICLE_WORDS else plain
    # Other white space than the space may be within a token.
    return " ".join(_ARTICLES.sub(" ", plain).split())


def _as_number(token: str) -> str:
    """Return a number as the text of its float, else nothing."""
    # Trying costs most where it fails.
    if token[:1].isalpha() and token.strip() not in _NUMBER_WORDS:
        return ""
    try:
        return str(float(token))
    except ValueError:
        return ""


def _f1(given: Sequence[_Span], wanted: Sequence[_Span]) -> float:
    scores = [[_span_f1(one, other) for one in given] for other in wanted]
    if len(given) < len(wanted):
        scores = [[*column] for column in zip(*scores, strict=True)]
    mean = sum(best_alignment(scores)) / max(len(given), len(wanted))
    # numpy's rounding, by which the official script has two decimals.
    return round(mean * 100) / 100


def _span_f1(given: _Span, wanted: _Span) -> float:
    """Return F1 of two bags; 0.0 where the answer has numbers and the response none of them."""
    shared = len(given.bag & wanted.bag)
    if not shared:
        return float(not given.bag and not wanted.bag)
    if wanted.numbers and not wanted.numbers & given.numbers:
        return 0.0
    precision, recall = shared / len(given.bag), shared / len(wanted.bag)
    return 2 * precision * recall / (precision + recall)
