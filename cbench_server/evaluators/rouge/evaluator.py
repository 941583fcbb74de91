"""The evaluator: four kinds of ROUGE between a response and the expected summary."""

from collections.abc import Callable
from statistics import fmean
from typing import Literal, get_args

from cbench_server.errors import InvalidInput
from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.evaluators.rouge.scores import (
    RougeText,
    rouge_1,
    rouge_2,
    rouge_l,
    rouge_lsum,
)
from cbench_server.types import Example, Scores

Reference = Literal["best", "mean"]

_KINDS = {
    "rouge_1_f1": rouge_1,
    "rouge_2_f1": rouge_2,
    "rouge_l_f1": rouge_l,
    "rouge_lsum_f1": rouge_lsum,
}


class Rouge(ResponseEvaluator):
    """Gives the F1 of ROUGE-1, 2, L and Lsum, each of the reference that is best by it.

    With `reference="mean"` it is the mean over the references. With `first_line`
    only the first line counts that is not empty, as LLMLingua-2 has it.
    """

    name = "rouge"
    description = "ROUGE-1, 2, L and Lsum, as the rouge-score package and SCROLLS compute them."
    required_fields = ("answer",)
    # Thousands of lines take most: 20 ms up to here.
    inline_limit = 32_000
    score_infos = (
        ScoreInfo("rouge_1_f1", "F1 of single words."),
        ScoreInfo("rouge_2_f1", "F1 of pairs of neighbouring words."),
        ScoreInfo("rouge_l_f1", "F1 of the longest common subsequence."),
        ScoreInfo("rouge_lsum_f1", "F1 of the longest common subsequences, line by line."),
    )

    def __init__(
        self,
        *,
        use_stemmer: bool = False,
        reference: Reference = "best",
        first_line: bool = False,
        strip_thinking: bool = True,
    ) -> None:
        if reference not in get_args(Reference):
            raise InvalidInput(f'rouge has no reference "{reference}"; it is best or mean')
        super().__init__(strip_thinking=strip_thinking)
        self.options = {"use_stemmer": use_stemmer, **self.options}
        # A run that asks for nothing else is recorded as it always was.
        if reference != "best":
            self.options["reference"] = reference
        if first_line:
            self.options["first_line"] = True
        if use_stemmer:
            # nltk's stemmer takes half a second to import.
            self.placement = "worker"
        self._use_stemmer = use_stemmer
        self._of_all: Callable[[list[float]], float] = max if reference == "best" else fmean
        self._first_line = first_line

    def score(self, original: Example, processed: Example) -> Scores:
        expected = [RougeText(text, use_stemmer=self._use_stemmer) for text in references(original)]
        if not expected:
            return {}
        text = self.response(processed)
        if self._first_line:
            text = text.lstrip("\n").partition("\n")[0]
        response = RougeText(text, use_stemmer=self._use_stemmer)
        return {
            name: self._of_all([kind(response, reference) for reference in expected])
            for name, kind in _KINDS.items()
        }
