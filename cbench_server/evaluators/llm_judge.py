"""LLM judge: a model rates the response from 1 to 5."""

from collections.abc import Mapping, Sequence
from typing import Any

from cbench_server.errors import CbenchError
from cbench_server.evaluators.judge import Judge, JudgeSettings
from cbench_server.evaluators.judge_packs import pack_named
from cbench_server.evaluators.judge_prompt import Section
from cbench_server.evaluators.judge_verdicts import parse_rating
from cbench_server.evaluators.judged_text import reference_text, response_text
from cbench_server.evaluators.score_info import ScoreInfo
from cbench_server.systems.blocking import run_blocking
from cbench_server.types import Assessment, Example, Placement, Scores


class LLMJudge:
    """Gives `judge_score`: a model's rating from 1 to 5, scaled to 0 to 1.

    Args:
        base_url: The root of an OpenAI-compatible endpoint; `/v1/chat/completions` is added.
        api_key: None means `OPENAI_API_KEY` from the environment, "" means no key.
        timeout: Seconds for one attempt.
        max_retries: Attempts after the first, also after a reply without a rating.
        retry_base_delay: Seconds; doubled with every attempt, then jittered.
        pack: The prompt, by name.
        repeats: How often each pair is judged; the median rating counts.
        rpm: Requests a minute, shared by all judges of this process that ask the same model.
        max_cost: US dollars; a call that might exceed them together with the others is not made.
        input_price: US dollars per million tokens of the prompt.
        output_price: Likewise, of the reply.
        extra_body: Further keys of the request; one that is None is left out.
    """

    name = "llm-judge"
    version = "1"
    description = "A model's rating of the response from 1 to 5, scaled to 0 to 1."
    placement: Placement = "io"
    asks_model = True
    # Each request has its timeout; waiting for a turn under `rpm` is no failure, however long.
    patience = None
    reads = "response"
    required_fields = ("question",)
    score_infos = (
        ScoreInfo("judge_score", "The rating, from 0.0 for 1 to 1.0 for 5."),
        ScoreInfo("judge_agreement", "Share of repeated ratings that agree; with repeats only."),
    )

    def __init__(
        self,
        base_url: str,
        model: str = "gpt-4",
        api_key: str | None = None,
        timeout: float = 60.0,
        *,
        max_retries: int = 3,
        retry_base_delay: float = 1.0,
        pack: str = "correctness",
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
        self._judge = Judge(settings, pack_named(pack, "rating"), parse_rating)
        self._strip_thinking = strip_thinking
        self.options = {**settings.options(), "pack": pack, "strip_thinking": strip_thinking}
        self.version = f"{type(self).version}+{pack}.{self._judge.pack.digest}"

    def score(self, original: Example, processed: Example) -> Scores:
        """Do as `assess` does, and wait; a judge that fails scores 0.0."""
        try:
            return run_blocking(self.assess(original, processed)).scores
        except CbenchError:
            return {"judge_score": 0.0}

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Have the response rated; raises EvaluatorBroken if the judge gives no rating."""
        question = original.get("question")
        if question is None:
            question = original.get("context")
        if question is None:
            return Assessment({})
        response = response_text(processed, strip=self._strip_thinking)
        if not response.strip():
            return Assessment({"judge_score": 0.0}, {"reason": "the response is empty"})
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

    async def close_connections(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        await self._judge.close_connections()


def _median(ratings: Sequence[float]) -> float:
    ordered = sorted(ratings)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[~middle]) / 2
