"""Summarization quality: ROUGE-L, the same numbers as the rouge-score package, only faster."""

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, expected_answers
from cbench_server.evaluators.rouge.words import longest_common, words_of
from cbench_server.types import Example, Scores


class SummarizationQuality(ResponseEvaluator):
    """Gives `rouge_l_precision`, `rouge_l_recall` and `rouge_l_f1`, all of the best reference."""

    name = "summarization-quality"
    description = "ROUGE-L between response and answer, as the rouge-score package computes it."
    required_fields = ("answer",)
    score_infos = (
        ScoreInfo("rouge_l_f1", "Harmonic mean of the other two."),
        ScoreInfo("rouge_l_precision", "Share of the response's words that follow the answer."),
        ScoreInfo("rouge_l_recall", "Share of the answer's words that the response follows."),
    )

    def __init__(self, *, use_stemmer: bool = False, strip_thinking: bool = True) -> None:
        super().__init__(strip_thinking=strip_thinking)
        self.options = {"use_stemmer": use_stemmer, **self.options}
        if use_stemmer:
            # nltk's stemmer takes half a second to import.
            self.placement = "worker"
        self._use_stemmer = use_stemmer

    def score(self, original: Example, processed: Example) -> Scores:
        expected = expected_answers(original)
        if not expected:
            return {}
        return rouge_l_scores(self.response(processed), expected, use_stemmer=self._use_stemmer)


def rouge_l_scores(response: str, expected: list[str], *, use_stemmer: bool = False) -> Scores:
    """Score a response against the reference it has the highest F1 with.

    An empty reference scores 1.0 throughout; failing that, an empty response
    scores 0.0.
    """
    if "" in expected:
        return _named(1.0, 1.0, 1.0)
    words = words_of(response, use_stemmer=use_stemmer)
    scores = [
        _rouge_l(words, words_of(reference, use_stemmer=use_stemmer)) for reference in expected
    ]
    # The first of equals, as rouge-score's score_multi chooses.
    return max(scores, key=lambda one: one["rouge_l_f1"])


def _rouge_l(words: list[str], wanted: list[str]) -> Scores:
    if not words or not wanted:
        return _named(0.0, 0.0, 0.0)
    shared = longest_common(words, wanted)
    precision, recall = shared / len(words), shared / len(wanted)
    return _named(precision, recall, 2 * precision * recall / (precision + recall) if shared else 0)


def _named(precision: float, recall: float, f1: float) -> Scores:
    # F1 first: where a dataset names no score, the first one counts.
    return {"rouge_l_f1": f1, "rouge_l_precision": precision, "rouge_l_recall": recall}
