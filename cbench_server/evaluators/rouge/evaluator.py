"""The evaluator: four kinds of ROUGE between a response and the expected summary."""

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.evaluators.rouge.scores import (
    RougeText,
    rouge_1,
    rouge_2,
    rouge_l,
    rouge_lsum,
)
from cbench_server.types import Example, Scores

_KINDS = {
    "rouge_1_f1": rouge_1,
    "rouge_2_f1": rouge_2,
    "rouge_l_f1": rouge_l,
    "rouge_lsum_f1": rouge_lsum,
}


class Rouge(ResponseEvaluator):
    """Gives the F1 of ROUGE-1, 2, L and Lsum, each of the reference that is best by it."""

    name = "rouge"
    description = "ROUGE-1, 2, L and Lsum, as the rouge-score package and SCROLLS compute them."
    required_fields = ("answer",)
    score_infos = (
        ScoreInfo("rouge_1_f1", "F1 of single words."),
        ScoreInfo("rouge_2_f1", "F1 of pairs of neighbouring words."),
        ScoreInfo("rouge_l_f1", "F1 of the longest common subsequence."),
        ScoreInfo("rouge_lsum_f1", "F1 of the longest common subsequences, line by line."),
    )

    def __init__(self, *, use_stemmer: bool = False, strip_thinking: bool = True) -> None:
        super().__init__(strip_thinking=strip_thinking)
        self.options = {"use_stemmer": use_stemmer, **self.options}
        self._use_stemmer = use_stemmer

    def score(self, original: Example, processed: Example) -> Scores:
        expected = [RougeText(text, use_stemmer=self._use_stemmer) for text in references(original)]
        if not expected:
            return {}
        text = self.response(processed)
        response = RougeText(text, use_stemmer=self._use_stemmer)
        return {
            name: max(kind(response, reference) for reference in expected)
            for name, kind in _KINDS.items()
        }
