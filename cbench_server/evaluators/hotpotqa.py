"""HotpotQA: F1 and exact match of the answer, with no F1 for a part of yes or no."""

from collections import Counter

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.metrics.quality import answer_tokens, f1_of_overlap, shared_tokens
from cbench_server.types import Example, Scores

# Answers that are right or wrong as a whole.
_WHOLE = (["yes"], ["no"], ["noanswer"])


class HotpotQA(ResponseEvaluator):
    """Gives `hotpotqa_f1` and `hotpotqa_em`, each the best over the references."""

    name = "hotpotqa"
    description = "Answer F1 and exact match as HotpotQA's own script computes them."
    required_fields = ("answer",)
    score_infos = (
        ScoreInfo("hotpotqa_f1", "F1 of tokens; 0.0 if one side is yes or no and they differ."),
        ScoreInfo("hotpotqa_em", "1.0 if the normalised texts are equal."),
    )

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        if not expected:
            return {}
        given = answer_tokens(self.response(processed))
        counts = Counter(given)
        f1 = exact_match = 0.0
        for reference in expected:
            wanted = answer_tokens(reference)
            if given == wanted:
                exact_match = 1.0
            elif given in _WHOLE or wanted in _WHOLE:
                continue
            shared = shared_tokens(counts, wanted)
            f1 = max(f1, f1_of_overlap(shared, len(given), len(wanted)))
        return {"hotpotqa_f1": f1, "hotpotqa_em": exact_match}
