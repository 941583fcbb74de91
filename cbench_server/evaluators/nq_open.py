"""NQ-open: exact match of the answer, whichever way its accents are encoded."""

import unicodedata

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.texts.answers import answer_tokens
from cbench_server.types import Example, Scores


class NQOpen(ResponseEvaluator):
    """Gives `nq_open_em`: 1.0 if a reference normalises to the same text, else 0.0."""

    name = "nq-open"
    description = "Exact match as the script of the NQ-open task computes it."
    required_fields = ("answer",)
    score_infos = (ScoreInfo("nq_open_em", "1.0 if the normalised texts are equal."),)

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        if not expected:
            return {}
        given = _tokens(self.response(processed))
        return {"nq_open_em": float(any(given == _tokens(each) for each in expected))}


def _tokens(text: str) -> list[str]:
    """Return the words of a text in which accents are signs of their own."""
    return answer_tokens(unicodedata.normalize("NFD", text))
