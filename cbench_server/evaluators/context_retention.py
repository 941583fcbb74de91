"""Context retention: does the answer survive in the context a system left?"""

from collections import Counter
from collections.abc import Sequence

from cbench_server.evaluators.inputs import ScoreInfo, references
from cbench_server.metrics.quality import answer_tokens, recall_of_tokens
from cbench_server.types import Example, Placement, Scores


class ContextRetention:
    """Gives `answer_retained` and `answer_recall` where a system returns a context, no response.

    Only references that the original context contained count; where it
    contained none there is nothing to retain, and no score.
    """

    name = "context-retention"
    version = "1"
    description = "Whether the answer is still in the context, for systems that give no response."
    placement: Placement = "inline"
    reads = "context"
    required_fields = ("context", "answer")
    score_infos = (
        ScoreInfo("answer_retained", "1.0 if the processed context still contains the answer."),
        ScoreInfo("answer_recall", "Share of the answer's tokens that the processed context has."),
    )

    def score(self, original: Example, processed: Example) -> Scores:
        before, after = original.get("context"), processed.get("context")
        if processed.get("response") is not None or before is None or after is None:
            return {}
        if original.get("is_abstention"):
            return {}
        return retention_scores(str(before), str(after), references(original))


def retention_scores(before: str, after: str, expected: list[str]) -> Scores:
    """Score the references found in `before` against `after` and keep the best of each score."""
    wanted = [tokens for reference in expected if (tokens := answer_tokens(reference))]
    if not wanted:
        return {}
    haystack = _phrase(answer_tokens(before))
    present = [tokens for tokens in wanted if _phrase(tokens) in haystack]
    if not present:
        return {}
    left = answer_tokens(after)
    haystack, counts = _phrase(left), Counter(left)
    return {
        "answer_retained": float(any(_phrase(tokens) in haystack for tokens in present)),
        "answer_recall": max(recall_of_tokens(counts, tokens) for tokens in present),
    }


def _phrase(tokens: Sequence[str]) -> str:
    """Join tokens so that one phrase is in another only at whole words ("no" is not in "know")."""
    return f" {' '.join(tokens)} "
