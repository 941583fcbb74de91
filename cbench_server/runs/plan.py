"""The plan of a run: everything it needs, resolved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from cbench_server.contract import info_of
from cbench_server.models.reader import Reader
from cbench_server.runs.answers import EarlierAnswers
from cbench_server.runs.store import SpooledExample
from cbench_server.systems.caller import Caller
from cbench_server.tokens import Tokenizer
from cbench_server.types import Evaluator


@dataclass(frozen=True)
class DatasetPlan:
    """How the rows of one dataset are made."""

    evaluators: Sequence[Evaluator]
    reference_fields: frozenset[str] = frozenset()
    """Withheld from systems."""
    primary_score: str = ""
    is_score_chosen: bool = False
    """Whether the run names the score that counts, so that no other stands in for it."""

    def score_name(self, scores: Mapping[str, float]) -> str:
        """Name the score that counts for a row with these scores."""
        if self.is_score_chosen or self.primary_score in scores:
            return self.primary_score
        # The dataset's own, else retention, else the first.
        return "answer_retained" if "answer_retained" in scores else next(iter(scores), "")

    def describe(self) -> dict[str, Any]:
        """Record how rows are scored."""
        return {
            "primary_score": self.primary_score,
            "withheld_fields": sorted(self.reference_fields),
            "evaluators": [
                {
                    "name": evaluator.name,
                    "version": info.version,
                    "options": dict(info.options or {}),
                }
                for evaluator, info in [(each, info_of(each)) for each in self.evaluators]
            ],
        }


@dataclass(frozen=True)
class FailureBudget:
    """How many rows may fail before the run does: a number, or a share of the rows done."""

    count: int | None = None
    share: float | None = None

    def is_spent(self, failed: int, completed: int) -> bool:
        """Tell whether the run must stop; a share is judged from 20 rows on."""
        if self.count is not None and failed > self.count:
            return True
        return self.share is not None and completed >= 20 and failed > self.share * completed


@dataclass(frozen=True)
class Plan:
    """Everything a run needs, resolved."""

    run_id: str
    callers: Sequence[Caller]
    datasets: Mapping[str, DatasetPlan]
    tokenizer: Tokenizer
    text_fields: frozenset[str] | None = None
    repeats: int = 1
    row_timeout: float = 60.0
    wait_timeout: float = 600.0
    max_concurrency: int | None = None
    failure_budget: FailureBudget = field(default_factory=FailureBudget)
    already_failed: int = 0
    already_completed: int = 0
    kind: Literal["process", "memory"] = "process"
    reader: Reader | None = None
    """Answers for systems that return a context and no response."""
    answers: EarlierAnswers | None = None
    """Where answers are looked for before a system is called."""
    query_budget: int | None = None
    """The most remembered tokens a memory system may hand to a model for one question."""
    generation: int = 0
    """How often the run was taken up again, so that scopes of memory are never used twice."""


class ExampleSource(Protocol):
    """Where lanes read examples."""

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        """Return examples from ordinal `start` on, waiting for them; empty at the end."""
        ...

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        """Return the (ordinal, repeat) of rows of `system` that need not be made."""
        ...
