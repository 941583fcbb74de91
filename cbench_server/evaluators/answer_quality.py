"""Answer quality: how much of the expected answer the response has, by SQuAD's rules."""

from collections import Counter

from cbench_server.evaluators.inputs import (
    ResponseEvaluator,
    ScoreInfo,
    expected_answers,
    references,
)
from cbench_server.metrics.quality import answer_tokens, f1_of_overlap, shared_tokens
from cbench_server.types import Example, Scores


class AnswerQuality(ResponseEvaluator):
    """Gives `f1`, `exact_match`, `recall` and `contains`, each the best over the references.

    A question that has no answer (`is_abstention`) is for Abstention to score.
    """

    name = "answer-quality"
    description = "Token overlap between response and answer, as SQuAD v1.1 scores it."
    required_fields = ("answer",)
    score_infos = (
        ScoreInfo("f1", "Harmonic mean of token precision and recall."),
        ScoreInfo("exact_match", "1.0 if the normalised texts are equal."),
        ScoreInfo("recall", "Share of the answer's tokens that the response has."),
        ScoreInfo("contains", "1.0 if the response contains the answer, ignoring case."),
    )

    def applies(self, original: Example) -> bool:
        """Whether there is an answer to compare with."""
        return not original.get("is_abstention") and bool(references(original))

    def score(self, original: Example, processed: Example) -> Scores:
        expected = expected_answers(original)
        if not expected or original.get("is_abstention"):
            return {}
        return answer_scores(self.response(processed), expected)


def answer_scores(response: str, expected: list[str]) -> Scores:
    """Score a response against each reference and keep the best of each score.

    An empty reference scores 1.0 throughout; failing that, an empty response
    scores 0.0.
    """
    if "" in expected:
        return {"f1": 1.0, "exact_match": 1.0, "recall": 1.0, "contains": 1.0}
    f1 = exact_match = recall = contains = 0.0
    if response:
        tokens = answer_tokens(response)
        counts = Counter(tokens)
        lowered = response.lower()
        for reference in expected:
            wanted = answer_tokens(reference)
            if tokens == wanted:
                exact_match = 1.0
            if shared := shared_tokens(counts, wanted):
                f1 = max(f1, f1_of_overlap(shared, len(tokens), len(wanted)))
                recall = max(recall, shared / len(wanted))
            if reference.lower() in lowered:
                contains = 1.0
    return {"f1": f1, "exact_match": exact_match, "recall": recall, "contains": contains}
