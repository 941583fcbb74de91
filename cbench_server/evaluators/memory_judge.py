"""Memory judge: a model says whether an answer from memory is correct."""

from collections.abc import Mapping
from typing import Any

from cbench_server.errors import CbenchError
from cbench_server.evaluators.judge import Judge, JudgeSettings
from cbench_server.evaluators.judge_packs import pack_named
from cbench_server.evaluators.judge_verdicts import parse_yes_no
from cbench_server.evaluators.judged_text import reference_text, response_text
from cbench_server.evaluators.score_info import ScoreInfo
from cbench_server.systems.blocking import run_blocking
from cbench_server.types import Assessment, Example, Placement, Scores

_NEUTRAL = 0.5


class MemoryJudge:
    """Gives `memory_judge`, 1.0 if a model finds the answer correct, and `memory_judge_raw`.

    The arguments are those of LLMJudge.
    """

    name = "memory-judge"
    version = "1"
    description = "Whether a model finds the answer correct, given the expected one."
    placement: Placement = "io"
    asks_model = True
    # Each request has its timeout; waiting for a turn under `rpm` is no failure, however long.
    patience = None
    reads = "response"
    required_fields = ("question", "answer")
    score_infos = (
        ScoreInfo("memory_judge", "1.0 if the judge finds the answer correct."),
        ScoreInfo("memory_judge_raw", "Share of the judge's verdicts that say so."),
        ScoreInfo("memory_judge_agreement", "Share of repeated verdicts that agree."),
    )

    def __init__(
        self,
        base_url: str,
        model: str = "claude-haiku-4-5-20251001",
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 3,
        retry_base_delay: float = 1.0,
        *,
        pack: str = "memory-qa",
        repeats: int = 1,
        rpm: float | None = None,
        max_cost: float | None = None,
        input_price: float = 0.0,
        output_price: float = 0.0,
        extra_body: Mapping[str, Any] | None = None,
        strip_thinking: bool = True,
    ) -> None:
        settings = JudgeSettings(
            base_url=base_url,
            model=model,
            api_key=api_key,
            timeout=timeout,
            max_retries=max_retries,
            retry_base_delay=retry_base_delay,
            repeats=repeats,
            rpm=rpm,
            max_cost=max_cost,
            input_price=input_price,
            output_price=output_price,
            extra_body=extra_body,
        )
        self._judge = Judge(settings, pack_named(pack, "yes-no"), parse_yes_no)
        self._strip_thinking = strip_thinking
        self.options = {**settings.options(), "pack": pack, "strip_thinking": strip_thinking}
        self.version = f"{type(self).version}+{pack}.{self._judge.pack.digest}"

    def score(self, original: Example, processed: Example) -> Scores:
        """Do as `assess` does, and wait; a judge that fails scores 0.0."""
        try:
            return run_blocking(self.assess(original, processed)).scores
        except CbenchError:
            return _both(0.0)

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Have the response judged; raises EvaluatorBroken if the judge gives no verdict."""
        response = response_text(processed, strip=self._strip_thinking)
        if not response.strip():
            return Assessment(_both(0.0), {"reason": "the response is empty"})
        reference = reference_text(original)
        if not reference:
            return Assessment(_both(_NEUTRAL), {"reason": "there is no expected answer"})
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
