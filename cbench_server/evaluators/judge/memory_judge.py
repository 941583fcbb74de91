"""Memory judge: a model says whether an answer from memory is correct."""

from dataclasses import dataclass, field
from typing import ClassVar

from cbench_server.evaluators.inputs import ScoreInfo, reference_text, response_text
from cbench_server.evaluators.judge.evaluator import JudgeEvaluator
from cbench_server.evaluators.judge.packs import VerdictKind
from cbench_server.evaluators.judge.prompt import build_prompt
from cbench_server.evaluators.judge.yes_no import parse_yes_no
from cbench_server.types import Assessment, Example, Scores

_NEUTRAL = 0.5


@dataclass(eq=False, repr=False)
class MemoryJudge(JudgeEvaluator):
    """Gives `memory_judge`, 1.0 if a model finds the answer correct, and `memory_judge_raw`.

    The arguments are those of JudgeSettings.
    """

    name = "memory-judge"
    description = "Whether a model finds the answer correct, given the expected one."
    required_fields = ("question", "answer")
    score_infos = (
        ScoreInfo("memory_judge", "1.0 if the judge finds the answer correct."),
        ScoreInfo("memory_judge_raw", "Share of the judge's verdicts that say so."),
        ScoreInfo("memory_judge_agreement", "Share of repeated verdicts that agree."),
    )

    model: str = "claude-haiku-4-5-20251001"
    pack: str = field(default="memory-qa", kw_only=True)

    kinds: ClassVar[tuple[VerdictKind, ...]] = ("yes-no",)
    failed: ClassVar[Scores] = {"memory_judge": 0.0, "memory_judge_raw": 0.0}

    async def _assess(self, original: Example, processed: Example) -> Assessment:
        reference = reference_text(original)
        if not reference:
            return Assessment(
                dict.fromkeys(self.failed, _NEUTRAL), {"reason": "there is no expected answer"}
            )
        response = response_text(processed, strip=self.strip_thinking)
        if not response.strip():
            return Assessment({**self.failed}, {"reason": "the response is empty"})
        question = original.get("question")
        sections = [
            ("QUESTION", "" if question is None else str(question)),
            ("REFERENCE", reference),
            ("RESPONSE", response),
        ]
        prompt = build_prompt(self._judge.pack, sections, original)
        opinion = await self._judge.ask(prompt, parse_yes_no)
        share = sum(opinion.verdicts) / len(opinion.verdicts)
        is_correct = share > 0.5
        scores = {"memory_judge": float(is_correct), "memory_judge_raw": share}
        if len(opinion.verdicts) > 1:
            scores["memory_judge_agreement"] = opinion.agreement
        verdict = "YES" if is_correct else "NO"
        return Assessment(scores, {"verdict": verdict, **self._judge.describe(opinion)})
