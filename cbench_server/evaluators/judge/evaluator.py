"""Judge evaluator: what both judges share as evaluators, apart from their verdicts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

from cbench_server.errors import CbenchError
from cbench_server.evaluators.judge.controls import VERSION as CONTROLS_VERSION
from cbench_server.evaluators.judge.controls import Control, make_controls
from cbench_server.evaluators.judge.judge import ROW_EFFORT, Effort, Judge, answer_limit
from cbench_server.evaluators.judge.official_prompts import are_official
from cbench_server.evaluators.judge.packs import JudgePack, VerdictKind, pack_named
from cbench_server.evaluators.judge.qualification import qualify
from cbench_server.evaluators.judge.settings import JudgeSettings
from cbench_server.models.blocking import run_blocking
from cbench_server.scoring.assessment import GaveUp, is_context_only
from cbench_server.tokens import count_tokens
from cbench_server.types import Assessment, Example, Placement, ScoreInfo, Scores

# What the instructions of a pack take, about.
_PACK_TOKENS = 600


@dataclass(eq=False, repr=False)
class JudgeEvaluator(JudgeSettings):
    """Asks a model about a response. The arguments are those of JudgeSettings."""

    version = "4"
    name = ""
    placement: ClassVar[Placement] = "io"
    asks_model = True
    # Each request has its timeout; waiting for a turn is not a failure, however long.
    patience = None
    reads = "response"
    score_infos: ClassVar[tuple[ScoreInfo, ...]] = ()

    kinds: ClassVar[tuple[VerdictKind, ...]]
    """The kinds of packs that it takes."""
    failed: ClassVar[Scores]
    """What `score` gives where the judge fails, or the response is empty."""

    def __post_init__(self, api_key: str | None) -> None:
        super().__post_init__(api_key)
        pack = pack_named(self.pack, self.kinds)
        if self.prompts:
            pack = pack.with_templates(self.prompts)
        self._judge = Judge(self, api_key, pack)
        self.version = f"{type(self).version}+{self.pack}.{pack.digest}"
        self._marks: dict[str, Any] = {"self_graded": True} if self.self_graded else {}
        if self.label:
            self.name = f"{type(self).name}:{self.label}"
            self.score_infos = tuple(  # type: ignore[misc] # those of the class, under other names
                replace(info, name=self._named(info.name)) for info in self.score_infos
            )
        self._judge.payer = self.name

    def _named(self, score: str) -> str:
        return f"{score}:{self.label}" if self.label else score

    def score(self, original: Example, processed: Example) -> Scores:
        """Do as `assess` does, and wait; a judge that fails scores 0.0."""
        if is_context_only(processed):
            return {}
        try:
            return run_blocking(self.assess(original, processed)).scores
        except CbenchError:
            return {self._named(name): value for name, value in self.failed.items()}

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Have the response judged; raises EvaluatorBroken if the judge gives no verdict."""
        effort = Effort()
        ROW_EFFORT.set(effort)
        try:
            said = await self._assess(original, processed)
        except GaveUp as error:
            if effort.requests:
                # What was asked in vain was asked, and paid for.
                error.details = {**error.details, **self._judge.spent(effort)}
            raise
        scores = {self._named(name): value for name, value in said.scores.items()}
        details = {**said.details, **self._marks} if said.details else said.details
        return Assessment(scores, details)

    async def _assess(self, original: Example, processed: Example) -> Assessment:
        raise NotImplementedError

    def control_identity(self) -> str:
        """Name all that verdicts on controls depend on, but for the dataset."""
        asked = [self.base_url.rstrip("/"), self.model, self.version, CONTROLS_VERSION]
        return "\n".join([*asked, json.dumps(self._judge.body, sort_keys=True)])

    async def qualify(self, examples: Sequence[Example], rows: int, seed: int) -> dict[str, Any]:
        """Have controls judged, made from examples of a run of so many; return how that went."""
        pack = self._judge.pack
        main = self._named(next(iter(self.failed)))
        effort = Effort()

        async def assess(control: Control) -> float | None:
            try:
                said = await self.assess(control.original, {"response": control.response})
            except GaveUp as error:
                effort.take(error.details)
                raise
            effort.take(said.details)
            return said.scores.get(main)

        controls = make_controls(examples, rows, seed) if pack.shows_reference else []
        record = await qualify(pack, controls, assess)
        return {
            "url": self.base_url,
            "model": self.model,
            "pack": self.pack,
            "pack_digest": pack.digest,
            "prompts": _whose(pack),
            "averages_types": pack.averages_types,
            "effort": effort.describe(),
            **record,
        }

    def budget_trouble(self) -> str:
        """Say why nobody can tell what the judge may cost at most; empty if one can."""
        if self.price is None:
            return "has no price. Give one with --judge-price IN,OUT."
        if not answer_limit(self._judge.body):
            return "has no limit of tokens. Give one with --judge-option max_tokens=N."
        return ""

    def most_usd(self, original: Example, response_tokens: int) -> Decimal:
        """Return about how much it may cost to judge a response of so many tokens."""
        pack = self._judge.pack
        texts = [str(original.get(name) or "") for name in ("question", "answer", "reference")]
        tokens = count_tokens("\n".join(texts)) + response_tokens + _PACK_TOKENS
        turns = original.get("turns") if pack.is_by_turn else None
        verdicts = len(turns) if isinstance(turns, list) else 2 if pack.kind == "pairwise" else 1
        return self._judge.most_usd(tokens, verdicts)

    def mark(self, marks: Mapping[str, Any]) -> None:
        """Keep with every verdict from now on what a reader must know of this judge."""
        self._marks |= marks

    async def probe(self) -> None:
        """Make sure that the model's server is there; raise ChatFailed if not."""
        await self._judge.probe()

    async def close_connections(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        await self._judge.close_connections()


def _whose(pack: JudgePack) -> str:
    if not pack.templates:
        return "own"
    return "official" if are_official(pack.name, pack.templates) else "from a file"
