"""HotpotQA: F1 and exact match of the answer, with no F1 for a part of yes or no."""

from collections import Counter

from cbench_server.evaluators.inputs import ScoreInfo, references, response_text
from cbench_server.metrics.quality import answer_tokens, f1_of_overlap, shared_tokens
from cbench_server.types import Example, Placement, Scores

# Answers that are right or wrong as a whole.
_WHOLE = (["yes"], ["no"], ["noanswer"])


class HotpotQA:
    """Gives `hotpotqa_f1` and `hotpotqa_em`, each the best over the references."""

    name = "hotpotqa"
    version = "1"
    description = "Answer F1 and exact match as HotpotQA's own script computes them."
    placement: Placement = "inline"
    reads = "response"
    required_fields = ("answer",)
    score_infos = (
        ScoreInfo("hotpotqa_f1", "F1 of tokens; 0.0 if one side is yes or no and they differ."),
        ScoreInfo("hotpotqa_em", "1.0 if the normalised texts are equal."),
    )

    def __init__(self, *, strip_thinking: bool = True) -> None:
        self.options = {"strip_thinking": strip_thinking}
        self._strip_thinking = strip_thinking

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        if not expected:
            return {}
        given = answer_tokens(response_text(processed, strip=self._strip_thinking))
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
