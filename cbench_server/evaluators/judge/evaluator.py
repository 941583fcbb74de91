"""Judge evaluator: what both judges share as evaluators, apart from their verdicts."""

from dataclasses import dataclass
from typing import Any, ClassVar

from cbench_server.errors import CbenchError
from cbench_server.evaluators.judge.judge import Judge
from cbench_server.evaluators.judge.packs import VerdictKind, pack_named
from cbench_server.evaluators.judge.settings import JudgeSettings
from cbench_server.models.blocking import run_blocking
from cbench_server.scoring.assessment import is_context_only
from cbench_server.types import Assessment, Example, Placement, Scores


@dataclass(eq=False, repr=False)
class JudgeEvaluator(JudgeSettings):
    """Asks a model about a response. The arguments are those of JudgeSettings."""

    version = "1"
    placement: ClassVar[Placement] = "io"
    asks_model = True
    # Each request has its timeout; waiting for a turn under `rpm` is not a failure, however long.
    patience = None
    reads = "response"

    kind: ClassVar[VerdictKind]
    """The kind of pack that it takes."""
    parse: ClassVar[Any]
    """What reads a verdict from a reply."""
    failed: ClassVar[Scores]
    """What `score` gives where the judge fails, or the response is empty."""

    def __post_init__(self, api_key: str | None) -> None:
        super().__post_init__(api_key)
        self._judge = Judge(self, api_key, pack_named(self.pack, self.kind), self.parse)
        self.version = f"{type(self).version}+{self.pack}.{self._judge.pack.digest}"

    def score(self, original: Example, processed: Example) -> Scores:
        """Do as `assess` does, and wait; a judge that fails scores 0.0."""
        if is_context_only(processed):
            return {}
        try:
            return run_blocking(self.assess(original, processed)).scores
        except CbenchError:
            return {**self.failed}

    async def assess(self, original: Example, processed: Example) -> Assessment:
        """Have the response judged; raises EvaluatorBroken if the judge gives no verdict."""
        raise NotImplementedError

    async def close_connections(self) -> None:
        """Close the connections of the running loop; a later call opens new ones."""
        await self._judge.close_connections()
