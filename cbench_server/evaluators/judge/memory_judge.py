"""Memory judge: a model says whether an answer from memory is correct."""

from dataclasses import dataclass, field
from typing import ClassVar

from cbench_server.errors import CbenchError
from cbench_server.evaluators.inputs import ScoreInfo, reference_text, response_text
from cbench_server.evaluators.judge.judge import Judge
from cbench_server.evaluators.judge.packs import pack_named
from cbench_server.evaluators.judge.settings import JudgeSettings
from cbench_server.evaluators.judge.verdicts import parse_yes_no
from cbench_server.models.blocking import run_blocking
from cbench_server.types import Assessment, Example, Placement, Scores

_NEUTRAL = 0.5


@dataclass(eq=False, repr=False)
class MemoryJudge(JudgeSettings):
    """Gives `memory_judge`, 1.0 if a model finds the answer correct, and `memory_judge_raw`.

    The arguments are those of JudgeSettings.
    """

    name = "memory-judge"
    version = "1"
    description = "Whether a model finds the answer correct, given the expected one."
    placement: ClassVar[Placement] = "io"
    asks_model = True
    # Each request has its timeout; waiting for a turn under `rpm` is not a failure, however long.
    patience = None
    reads = "response"
    required_fields = ("question", "answer")
    score_infos = (
        ScoreInfo("memory_judge", "1.0 if the judge finds the answer correct."),
        ScoreInfo("memory_judge_raw", "Share of the judge's verdicts that say so."),
        ScoreInfo("memory_judge_agreement", "Share of repeated verdicts that agree."),
    )

    model: str = "claude-haiku-4-5-20251001"
    pack: str = field(default="memory-qa", kw_only=True)

    def __post_init__(self, api_key: str | None) -> None:
        super().__post_init__(api_key)
        self._judge = Judge(self, api_key, pack_named(self.pack, "yes-no"), parse_yes_no)
        self.version = f"{type(self).version}+{self.pack}.{self._judge.pack.digest}"

    def score(self, original: Example, processed: Example) -> Scores:
        """Do as `assess` does, and wait; a judge that fails scores 0.0."""
        try:
            return run_blocking(self.assess(original, processed)).scores
        except CbenchError:
            return _both(0.0)

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Have the response judged; raises EvaluatorBroken if the judge gives no verdict."""
        reference = reference_text(original)
        if not reference:
            return Assessment(_both(_NEUTRAL), {"reason": "there is no expected answer"})
        response = response_text(processed, strip=self.strip_thinking)
        if not response.strip():
            return Assessment(_both(0.0), {"reason": "the response is empty"})
        question = original.get("question")
        opinion = await self._judge.ask(
            [
                ("QUESTION", "" if question is None else str(question)),
                ("REFERENCE", reference),
                ("RESPONSE", response),
            ]
        )
        share = sum(opinion.verdicts) / len(opinion.verdicts)
        is_correct = share > 0.5
        scores = {"memory_judge": float(is_correct), "memory_judge_raw": share}
        if len(opinion.verdicts) > 1:
            scores["memory_judge_agreement"] = opinion.agreement
        verdict = "YES" if is_correct else "NO"
        return Assessment(scores, {"verdict": verdict, **self._judge.describe(opinion)})

    async def close_connections(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        await self._judge.close_connections()


def _both(value: float) -> Scores:
    return {"memory_judge": value, "memory_judge_raw": value}
