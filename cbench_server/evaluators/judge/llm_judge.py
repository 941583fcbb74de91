"""LLM judge: a model rates the response from 1 to 5."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cbench_server.evaluators.inputs import ScoreInfo, reference_text, response_text
from cbench_server.evaluators.judge.evaluator import JudgeEvaluator
from cbench_server.evaluators.judge.packs import VerdictKind
from cbench_server.evaluators.judge.prompt import Section
from cbench_server.evaluators.judge.verdicts import parse_rating
from cbench_server.types import Assessment, Example, Scores


@dataclass(eq=False, repr=False)
class LLMJudge(JudgeEvaluator):
    """Gives `judge_score`: a model's rating from 1 to 5, scaled to 0 to 1.

    With `repeats`, the median rating counts. The arguments are those of JudgeSettings.
    """

    name = "llm-judge"
    description = "A model's rating of the response from 1 to 5, scaled to 0 to 1."
    required_fields = ("question",)
    score_infos = (
        ScoreInfo("judge_score", "The rating, from 0.0 for 1 to 1.0 for 5."),
        ScoreInfo("judge_agreement", "Share of repeated ratings that agree; with repeats only."),
    )

    model: str = "gpt-4"
    max_retries: int = field(default=3, kw_only=True)
    retry_base_delay: float = field(default=1.0, kw_only=True)
    pack: str = field(default="correctness", kw_only=True)

    kind: ClassVar[VerdictKind] = "rating"
    parse: ClassVar[Any] = staticmethod(parse_rating)
    failed: ClassVar[Scores] = {"judge_score": 0.0}

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Have the response rated; raises EvaluatorBroken if the judge gives no rating."""
        question = original.get("question")
        if question is None:
            question = original.get("context")
        if question is None:
            return Assessment({})
        response = response_text(processed, strip=self.strip_thinking)
        if not response.strip():
            return Assessment({**self.failed}, {"reason": "the response is empty"})
        sections: list[Section] = [("QUESTION", str(question))]
        reference = reference_text(original)
        if reference and self._judge.pack.shows_reference:
            sections.append(("REFERENCE", reference))
        opinion = await self._judge.ask([*sections, ("RESPONSE", response)])
        rating = _median(opinion.verdicts)
        scores = {"judge_score": (rating - 1) / 4}
        if len(opinion.verdicts) > 1:
            scores["judge_agreement"] = opinion.agreement
        return Assessment(scores, {"verdict": rating, **self._judge.describe(opinion)})


def _median(ratings: Sequence[float]) -> float:
    ordered = sorted(ratings)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[~middle]) / 2
