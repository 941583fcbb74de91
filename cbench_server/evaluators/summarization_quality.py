"""Summarization quality: ROUGE-L, the same numbers as the rouge-score package, only faster."""

from functools import cache
from typing import Any

from rapidfuzz.distance import LCSseq
from rouge_score.tokenize import tokenize

from cbench_server.evaluators.references import references
from cbench_server.evaluators.score_info import ScoreInfo
from cbench_server.thinking import strip_thinking as without_thinking
from cbench_server.types import Example, Placement, Scores


class SummarizationQuality:
    """Gives `rouge_l_precision`, `rouge_l_recall` and `rouge_l_f1`, all of the best reference."""

    name = "summarization-quality"
    version = "1"
    description = "ROUGE-L between response and answer, as the rouge-score package computes it."
    placement: Placement = "inline"
    reads = "response"
    required_fields = ("answer",)
    score_infos = (
        ScoreInfo("rouge_l_f1", "Harmonic mean of the other two."),
        ScoreInfo("rouge_l_precision", "Share of the response's words that follow the answer."),
        ScoreInfo("rouge_l_recall", "Share of the answer's words that the response follows."),
    )

    def __init__(self, *, use_stemmer: bool = False, strip_thinking: bool = True) -> None:
        self.options = {"use_stemmer": use_stemmer, "strip_thinking": strip_thinking}
        self._use_stemmer = use_stemmer
        self._strip_thinking = strip_thinking

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        if not expected:
            return {}
        response = processed.get("response")
        text = "" if response is None else str(response)
        if self._strip_thinking:
            text = without_thinking(text)
        return rouge_l_scores(text, expected, use_stemmer=self._use_stemmer)


def rouge_l_scores(response: str, expected: list[str], *, use_stemmer: bool = False) -> Scores:
    """Score a response against the reference it has the highest F1 with.

    An empty reference scores 1.0 throughout; failing that, an empty response
    scores 0.0.
    """
    if "" in expected:
        return _named(1.0, 1.0, 1.0)
    stemmer = _stemmer() if use_stemmer else None
    tokens = tokenize(response, stemmer)
    scores = [_rouge_l(tokens, tokenize(reference, stemmer)) for reference in expected]
    # The first of equals, as rouge-score's score_multi chooses.
    return max(scores, key=lambda one: one["rouge_l_f1"])


def _rouge_l(tokens: list[str], wanted: list[str]) -> Scores:
    if not tokens or not wanted:
        return _named(0.0, 0.0, 0.0)
    # Numbers for words: rapidfuzz would otherwise compare words by a hash.
    ids: dict[str, int] = {}
    shared = LCSseq.similarity(
        [ids.setdefault(token, len(ids)) for token in tokens],
        [ids.setdefault(token, len(ids)) for token in wanted],
    )
    precision, recall = shared / len(tokens), shared / len(wanted)
    return _named(precision, recall, 2 * precision * recall / (precision + recall) if shared else 0)


def _named(precision: float, recall: float, f1: float) -> Scores:
    # F1 first: where a dataset has no score of its own, the first one counts.
    return {"rouge_l_f1": f1, "rouge_l_precision": precision, "rouge_l_recall": recall}


@cache
def _stemmer() -> Any:
    # nltk takes half a second to import, and only stemming needs it.
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()
