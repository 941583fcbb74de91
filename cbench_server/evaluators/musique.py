"""MuSiQue: F1 and exact match, where two texts without a word that counts agree."""

from collections import Counter

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.metrics.quality import answer_tokens, f1_of_overlap, shared_tokens
from cbench_server.types import Example, Scores


class MuSiQue(ResponseEvaluator):
    """Gives `musique_f1` and `musique_em`, each the best over the references."""

    name = "musique"
    description = "Answer F1 and exact match as MuSiQue's own script computes them."
    required_fields = ("answer",)
    score_infos = (
        ScoreInfo("musique_f1", "F1 of tokens; 1.0 if neither side has any."),
        ScoreInfo("musique_em", "1.0 if the normalised texts are equal."),
    )

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        if not expected:
            return {}
        given = answer_tokens(self.response(processed))
        counts = Counter(given)
        f1 = 0.0
        for reference in expected:
            wanted = answer_tokens(reference)
            if given == wanted:
                return {"musique_f1": 1.0, "musique_em": 1.0}
            f1 = max(f1, f1_of_overlap(shared_tokens(counts, wanted), len(given), len(wanted)))
        return {"musique_f1": f1, "musique_em": 0.0}
