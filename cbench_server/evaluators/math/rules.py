"""Rules of single benchmarks' graders that math-equivalence applies in place of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cbench_server.evaluators.inputs import ScoreInfo
from cbench_server.evaluators.math.gsm8k import (
    flexible_match,
    strict_match,
    unpunctuated_match,
)
from cbench_server.evaluators.math.hendrycks import given_answer, is_equivalent
from cbench_server.evaluators.math.verify import agrees_by_verify
from cbench_server.types import Placement, Scores


def _hendrycks(response: str, reference: str) -> bool:
    return is_equivalent(given_answer(reference), given_answer(response))


@dataclass(frozen=True, slots=True)
class Rule:
    """Scores, and for each whether a response and one reference agree."""

    checks: Mapping[str, Callable[[str, str], bool]]
    score_infos: tuple[ScoreInfo, ...]
    placement: Placement = "inline"

    def scores(self, response: str, expected: Sequence[str]) -> Scores:
        """Score a response against the reference that agrees, if there is one."""
        return {
            name: float(any(agrees(response, reference) for reference in expected))
            for name, agrees in self.checks.items()
        }


RULES = {
    "hendrycks": Rule(
        {"math_hendrycks": _hendrycks},
        (ScoreInfo("math_hendrycks", "1.0 if the answers are equal as tidied LaTeX."),),
    ),
    "verify": Rule(
        {"math_verify": agrees_by_verify},
        (ScoreInfo("math_verify", "1.0 if math-verify takes the answers for equal."),),
        "worker",
    ),
    "gsm8k": Rule(
        {"gsm8k_strict": strict_match, "gsm8k_flexible": flexible_match},
        (
            ScoreInfo("gsm8k_strict", "1.0 if the number after `####` is the answer."),
            ScoreInfo("gsm8k_flexible", "1.0 if the last number is the answer."),
        ),
    ),
    "mgsm": Rule(
        {"mgsm_flexible": unpunctuated_match},
        (ScoreInfo("mgsm_flexible", "1.0 if the last number has the digits of the answer."),),
    ),
}
"""Rules by the name that `rule` gives them."""
