"""Context retention: does the answer survive in the context a system left?"""

from cbench_server.evaluators.inputs import ScoreInfo, references
from cbench_server.texts.presence import Phrase, SearchedText, phrases_of
from cbench_server.types import Example, Placement, Scores


class ContextRetention:
    """Gives `answer_retained` and `answer_recall` where a system returns a context, no response.

    Only references that the original context contained count, found as a reader
    would find them (texts/presence.py); where it contained none there is
    nothing to retain, and no score.
    """

    name = "context-retention"
    version = "3"
    description = "Whether the answer is still in the context, for systems that give no response."
    placement: Placement = "inline"
    # Fractions and letters with two forms take most: 30 ms up to here.
    inline_limit = 16_000
    reads = "context"
    required_fields = ("context", "answer")
    score_infos = (
        ScoreInfo("answer_retained", "1.0 if the processed context still contains the answer."),
        ScoreInfo("answer_recall", "Share of the answer's tokens that the processed context has."),
    )

    def applies(self, original: Example) -> bool:
        """Whether there is an answer in the original context that can be looked for."""
        return bool(_present(original))

    def score(self, original: Example, processed: Example) -> Scores:
        after = processed.get("context")
        if processed.get("response") is not None or after is None:
            return {}
        present = _present(original)
        if not present:
            return {}
        left = SearchedText(str(after))
        return {
            "answer_retained": float(any(map(left.contains, present))),
            "answer_recall": max(map(left.recall, present)),
        }


def _present(original: Example) -> list[Phrase]:
    """Return the references that can be looked for and that the original context has."""
    context = original.get("context")
    if context is None or original.get("is_abstention"):
        return []
    before = SearchedText(str(context))
    return [phrase for phrase in phrases_of(references(original)) if before.contains(phrase)]
