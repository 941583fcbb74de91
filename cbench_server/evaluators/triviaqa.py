"""TriviaQA: F1 and exact match, with punctuation read as white space."""

import re
import string
from collections import Counter

from cbench_server.evaluators.inputs import ResponseEvaluator, ScoreInfo, references
from cbench_server.metrics.quality import f1_of_overlap, shared_tokens
from cbench_server.types import Example, Scores

_SPACES = {ord(each): " " for each in string.punctuation + "‘’´`"}
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


class TriviaQA(ResponseEvaluator):
    """Gives `triviaqa_f1` and `triviaqa_em`, each the best over the references."""

    name = "triviaqa"
    description = "F1 and exact match as TriviaQA's own script computes them."
    required_fields = ("answer",)
    score_infos = (
        ScoreInfo("triviaqa_f1", "Harmonic mean of token precision and recall."),
        ScoreInfo("triviaqa_em", "1.0 if the normalised texts are equal."),
    )

    def score(self, original: Example, processed: Example) -> Scores:
        expected = references(original)
        if not expected:
            return {}
        given = _tokens(self.response(processed))
        counts = Counter(given)
        f1 = exact_match = 0.0
        for reference in expected:
            wanted = _tokens(reference)
            if given == wanted:
                exact_match = 1.0
            f1 = max(f1, f1_of_overlap(shared_tokens(counts, wanted), len(given), len(wanted)))
        return {"triviaqa_f1": f1, "triviaqa_em": exact_match}


def _tokens(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_SPACES)).split()
