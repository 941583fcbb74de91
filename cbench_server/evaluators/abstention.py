"""Abstention: does a response to a question without an answer say that there is none?"""

import re

from cbench_server.evaluators.inputs import ExplainingEvaluator, ScoreInfo
from cbench_server.types import Assessment, Example

# LoCoMo's own scorer knows "no information available" and "not mentioned"; models say it in
# more ways. What is denied must be a saying or a knowing: "she did not go" is an answer.
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\bno (?:such |specific )?(?:information|mention|record|evidence|details?|data)\b",
        r"(?:\bnot|\bnever|n't) (?:\w+ly |ever |been )*"
        r"(?:mention|discuss|state[ds]?\b|specif|provid|record|reveal|indicat|disclos|sa(?:y|id)\b|"
        r"t(?:ell|old)\b|shared?\b)",
        r"(?:\bnot|n't)(?: have)? (?:enough|sufficient|any) (?:information|context|details?)\b",
        r"\b(?:insufficient|lack(?:s|ing)?|not enough) (?:information|context|evidence)\b",
        r"\b(?:cannot|can't|could not|couldn't|unable to|(?:not |im)possible to) (?:be )?"
        r"(?:determine|answer|tell|say|know|find|infer|identif|establish|recall)",
        r"\b(?:unknown|unanswerable|unspecified|not sure|unsure|(?:not known|unclear) from)\b",
        r"\b(?:i|we) (?:do not|don't) (?:know|remember|recall)\b",
    )
)


class Abstention(ExplainingEvaluator):
    """Gives `abstention` where `is_abstention` is true: 1.0 if the response says it cannot tell.

    Other evaluators leave such questions alone, because the words of an
    explanation why there is no answer are not what a response should repeat.
    """

    name = "abstention"
    description = "Whether a question without an answer is answered by saying so."
    required_fields = ("is_abstention",)
    score_infos = (ScoreInfo("abstention", "1.0 if the response says that it cannot tell."),)

    def applies(self, original: Example) -> bool:
        """Whether the dataset marks the question as one without an answer."""
        return bool(original.get("is_abstention"))

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score, and quote the words that decided."""
        if not original.get("is_abstention"):
            return Assessment({})
        said = abstaining_words(self.response(processed))
        if said is None:
            return Assessment({"abstention": 0.0})
        return Assessment({"abstention": 1.0}, {"said": said})


def abstaining_words(response: str) -> str | None:
    """Return the first words by which a response says that it cannot tell, or None."""
    text = response.replace("\u2019", "'")
    for pattern in _PATTERNS:
        if match := pattern.search(text):
            return match[0]
    return None
