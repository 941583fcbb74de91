"""Math equivalence: is the response's final answer the same as the expected one?"""

from itertools import product

from cbench_server.evaluators.inputs import ExplainingEvaluator, ScoreInfo, expected_answers
from cbench_server.evaluators.math.answers import final_answer, reference_answer
from cbench_server.evaluators.math.comparison import equivalent
from cbench_server.types import Assessment, Example, Placement

_SHOWN = 200


class MathEquivalence(ExplainingEvaluator):
    """Gives `math_equiv`: 1.0 if the final answer equals one of the references, else 0.0."""

    name = "math-equivalence"
    description = "Whether the response's final answer is mathematically equal to the answer."
    placement: Placement = "worker"
    required_fields = ("answer",)
    score_infos = (ScoreInfo("math_equiv", "1.0 if the answers are mathematically equal."),)

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score, and tell what was compared and how it was decided."""
        expected = expected_answers(original)
        if not expected:
            return Assessment({})
        text = self.response(processed)
        return _assessment(expected, text.strip())


def _assessment(expected: list[str], response: str) -> Assessment:
    """Compare with each reference until one is equal."""
    if any(not reference.strip() for reference in expected):
        return Assessment({"math_equiv": 1.0}, {"decided_by": "empty reference"})
    if not response:
        return Assessment({"math_equiv": 0.0}, {"decided_by": "empty response"})
    if any(response == reference.strip() for reference in expected):
        return Assessment({"math_equiv": 1.0}, {"decided_by": "text"})
    answer = final_answer(response)
    given = [text for text in (answer.text, answer.whole) if text] or [""]
    for gold, text in product(map(reference_answer, expected), given):
        judgement = equivalent(gold, text)
        if judgement.is_final:
            break
    details = {"extracted": answer.text[:_SHOWN], "found_by": answer.found_by}
    details |= {"decided_by": judgement.decided_by}
    if judgement.reason:
        details |= {"reason": judgement.reason}
    return Assessment({"math_equiv": float(judgement.equal)}, details)
