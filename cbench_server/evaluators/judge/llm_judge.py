"""LLM judge: a model rates the response, says whether it is right, or prefers one of two."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from cbench_server.evaluators.inputs import ScoreInfo, reference_text, references, response_text
from cbench_server.evaluators.judge.choices import Choice, parse_choice, parse_identifier
from cbench_server.evaluators.judge.conversation import Turn, turns_of
from cbench_server.evaluators.judge.evaluator import JudgeEvaluator
from cbench_server.evaluators.judge.judge import Opinion
from cbench_server.evaluators.judge.packs import VerdictKind
from cbench_server.evaluators.judge.prompt import (
    Section,
    build_prompt,
    build_turn_prompt,
)
from cbench_server.evaluators.judge.ratings import parse_bracketed, parse_rating
from cbench_server.evaluators.judge.yes_no import parse_yes_no
from cbench_server.types import Assessment, Example, Scores

_SCORE = ScoreInfo("judge_score", "The rating, from 0.0 for 1 to 1.0 for 5.")
_AGREEMENT = ScoreInfo(
    "judge_agreement", "Share of repeated ratings that agree; with repeats only."
)
_WINS: dict[Choice, float] = {"first": 1.0, "tie": 0.5, "second": 0.0}


@dataclass(eq=False, repr=False)
class LLMJudge(JudgeEvaluator):
    """Gives `judge_score`: a model's rating from 1 to 5, scaled to 0 to 1.

    With `repeats`, the median rating counts. Other packs ask for a yes or no,
    for a grade of each turn, or for a choice between the response and the
    reference. The arguments are those of JudgeSettings.
    """

    name = "llm-judge"
    description = "A model's rating of the response from 1 to 5, scaled to 0 to 1."
    score_infos: ClassVar[tuple[ScoreInfo, ...]] = (_SCORE, _AGREEMENT)

    model: str = "gpt-4"
    max_retries: int = field(default=3, kw_only=True)
    retry_base_delay: float = field(default=1.0, kw_only=True)
    pack: str = field(default="correctness", kw_only=True)

    kinds: ClassVar[tuple[VerdictKind, ...]] = ("rating", "yes-no", "pairwise")
    failed: ClassVar[Scores] = {"judge_score": 0.0}

    def __post_init__(self, api_key: str | None) -> None:
        pack = self.pack
        if pack == "mt-bench":
            self.score_infos = (_SCORE, *_GRADES, _AGREEMENT)  # type: ignore[misc]
        elif pack == "alpaca-eval":
            self.score_infos = (_SCORE, _FLIP, _AGREEMENT)  # type: ignore[misc]
        super().__post_init__(api_key)

    def applies(self, original: Example) -> bool:
        """Whether an original can be judged: it asks something, and has what the pack compares."""
        asked = original.get("question", original.get("context"))
        asks = asked not in (None, "", [], ())
        if self._judge.pack.kind == "rating":
            return asks
        return asks and bool(references(original))

    async def _assess(self, original: Example, processed: Example) -> Assessment:
        if self._judge.pack.is_by_turn:
            return await self._grade_turns(original, processed)
        question = original.get("question")
        if question is None:
            question = original.get("context")
        if question is None:
            return Assessment({})
        response = response_text(processed, strip=self.strip_thinking)
        if not response.strip():
            return Assessment({**self.failed}, {"reason": "the response is empty"})
        asked: Section = ("QUESTION", str(question))
        kind = self._judge.pack.kind
        if kind == "pairwise":
            return await self._prefer(original, asked, response)
        sections = [asked]
        reference = reference_text(original)
        if kind == "yes-no" and not reference:
            return Assessment({})
        if reference and self._judge.pack.shows_reference:
            sections.append(("REFERENCE", reference))
        sections.append(("RESPONSE", response))
        if kind == "yes-no":
            return await self._decide(original, sections)
        opinion = await self._rate(original, sections)
        rating = median(opinion.verdicts)
        scores = {"judge_score": self._judge.pack.scale.share(rating)}
        return Assessment(
            _with_agreement(scores, opinion), {"verdict": rating, **self._judge.describe(opinion)}
        )

    async def _rate(self, original: Example, sections: Sequence[Section]) -> Opinion[float]:
        pack = self._judge.pack
        prompt = build_prompt(pack, sections, original)
        return await self._judge.ask(prompt, partial(parse_rating, scale=pack.scale))

    async def _grade(self, original: Example, turns: Sequence[Turn]) -> Opinion[float]:
        """Ask for a grade of the last of these turns."""
        pack = self._judge.pack
        if not pack.templates:
            return await self._rate(original, _sections(turns))
        prompt = build_turn_prompt(pack, turns, original)
        return await self._judge.ask(prompt, partial(parse_bracketed, scale=pack.scale))

    async def _decide(self, original: Example, sections: Sequence[Section]) -> Assessment:
        prompt = build_prompt(self._judge.pack, sections, original)
        opinion = await self._judge.ask(prompt, parse_yes_no)
        is_right = sum(opinion.verdicts) * 2 > len(opinion.verdicts)
        scores = _with_agreement({"judge_score": float(is_right)}, opinion)
        verdict = "YES" if is_right else "NO"
        return Assessment(scores, {"verdict": verdict, **self._judge.describe(opinion)})

    async def _prefer(self, original: Example, asked: Section, response: str) -> Assessment:
        """Have the response compared with the reference, in both orders."""
        known = [text for text in references(original) if text.strip()]
        if not known:
            return Assessment({})
        shares: list[float] = []
        opinions: list[Opinion[Choice]] = []
        for is_first in (True, False):
            a, b = (response, known[0]) if is_first else (known[0], response)
            sections = [asked, ("RESPONSE A", a), ("RESPONSE B", b)]
            prompt = build_prompt(self._judge.pack, sections, original)
            parse = parse_identifier if self._judge.pack.templates else parse_choice
            opinion: Opinion[Choice] = await self._judge.ask(prompt, parse)
            won = median([_WINS[choice] for choice in opinion.verdicts])
            shares.append(won if is_first else 1.0 - won)
            opinions.append(opinion)
        flipped = abs(shares[0] - shares[1]) == 1.0
        scores = {"judge_score": sum(shares) / 2, "judge_flip": float(flipped)}
        details = {
            "verdict": shares,
            "choices": [[*opinion.verdicts] for opinion in opinions],
            **self._judge.describe(*opinions),
        }
        return Assessment(_with_agreement(scores, *opinions), details)

    async def _grade_turns(self, original: Example, processed: Example) -> Assessment:
        """Grade every turn of a conversation, each with what was said before."""
        scale = self._judge.pack.scale
        turns = turns_of(original, processed, strip=self.strip_thinking)
        if not turns:
            return Assessment({})
        grades: list[float] = []
        opinions: list[Opinion[float]] = []
        for place, turn in enumerate(turns):
            if not turn.response.strip():
                # What is missing is graded without asking.
                grades.append(float(scale.low))
                continue
            opinion = await self._grade(original, turns[: place + 1])
            grades.append(median(opinion.verdicts))
            opinions.append(opinion)
        mean = sum(grades) / len(grades)
        scores = {"judge_score": scale.share(mean), "judge_grade": mean}
        scores |= {f"judge_grade_turn_{n}": grade for n, grade in enumerate(grades[:2], 1)}
        if not opinions:
            return Assessment(scores, {"reason": "all responses are empty"})
        return Assessment(
            _with_agreement(scores, *opinions),
            {"verdict": grades, **self._judge.describe(*opinions)},
        )


_GRADES = (
    ScoreInfo("judge_grade", "Mean grade of the turns, from 1 to 10.", worst=1.0),
    ScoreInfo("judge_grade_turn_1", "Grade of the first turn, from 1 to 10.", worst=1.0),
    ScoreInfo("judge_grade_turn_2", "Grade of the second turn, from 1 to 10.", worst=1.0),
)
_FLIP = ScoreInfo(
    "judge_flip", "1.0 if the judge prefers what stands first, in both orders.", False, worst=1.0
)


def _sections(turns: Sequence[Turn]) -> list[Section]:
    *earlier, last = turns
    sections: list[Section] = []
    for number, turn in enumerate(earlier, 1):
        sections.append((f"QUESTION {number}", turn.question))
        sections.append((f"RESPONSE {number}", turn.response))
    sections.append(("QUESTION", last.question))
    if last.reference:
        sections.append(("REFERENCE", last.reference))
    return [*sections, ("RESPONSE", last.response)]


def _with_agreement(scores: Scores, *opinions: Opinion[Any]) -> Scores:
    if len(opinions[0].verdicts) > 1:
        scores["judge_agreement"] = min(opinion.agreement for opinion in opinions)
    return scores


def median(ratings: Sequence[float]) -> float:
    """Return the middle of the ratings, or of the two in the middle."""
    ordered = sorted(ratings)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[~middle]) / 2
