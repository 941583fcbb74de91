"""Math equivalence: is the response's final answer the same as the expected one?"""

from itertools import product

from cbench_server.evaluators.inputs import ExplainingEvaluator, ScoreInfo, expected_answers
from cbench_server.evaluators.math.answers import final_answer, reference_answer
from cbench_server.evaluators.math.comparison import equivalent
from cbench_server.evaluators.math.locale_numbers import LANGUAGES, as_plain
from cbench_server.evaluators.math.rules import RULES
from cbench_server.lazy_imports import require
from cbench_server.types import Assessment, Example, Placement

_SHOWN = 200
_FROM_FIELD = "field"


class MathEquivalence(ExplainingEvaluator):
    """Gives `math_equiv`: 1.0 if the final answer equals one of the references, else 0.0."""

    name = "math-equivalence"
    # 3: answers differ in what symbols drop, such as a unit next to its digit or its power.
    version = "3"
    description = "Whether the response's final answer is mathematically equal to the answer."
    placement: Placement = "worker"
    required_fields = ("answer",)
    score_infos: tuple[ScoreInfo, ...] = (
        ScoreInfo("math_equiv", "1.0 if the answers are mathematically equal."),
    )

    def __init__(self, *, rule: str = "", language: str = "", strip_thinking: bool = True) -> None:
        super().__init__(strip_thinking=strip_thinking)
        if rule and rule not in RULES:
            raise ValueError(f'rule "{rule}" is not one of: {", ".join(RULES)}')
        if language not in ("", _FROM_FIELD, *LANGUAGES):
            known = ", ".join(LANGUAGES)
            raise ValueError(f'language "{language}" is not "{_FROM_FIELD}" or one of: {known}')
        if rule in ("", "verify"):
            require("math_verify", "math-equivalence compares formulas with the package")
        if rule:
            self.score_infos = RULES[rule].score_infos
            self.placement = RULES[rule].placement
        # A run that asks for nothing else is recorded as it always was.
        asked = {"rule": rule, "language": language}
        chosen = {name: value for name, value in asked.items() if value}
        self.options = {**chosen, **self.options}
        self._rule = RULES.get(rule)
        self._language = language

    def assess(self, original: Example, processed: Example) -> Assessment:
        """Score, and tell what was compared and how it was decided."""
        expected = expected_answers(original)
        if not expected:
            return Assessment({})
        text = self.response(processed)
        if language := self._language_of(original):
            text = as_plain(text, language)
        if self._rule is not None:
            return Assessment(self._rule.scores(text, expected))
        return _assessment(expected, text.strip())

    def _language_of(self, original: Example) -> str:
        if self._language != _FROM_FIELD:
            return self._language
        return str(original.get("language") or "")


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
