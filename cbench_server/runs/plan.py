"""The plan of a run: everything it needs, resolved."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cbench_server.contract import info_of
from cbench_server.datasets.prompts.prompt import BARE, Asking
from cbench_server.metrics.outcomes import worst_value
from cbench_server.models.reader import Reader
from cbench_server.runs.answers import EarlierAnswers
from cbench_server.runs.padding import CONTAINMENT, padding_marks
from cbench_server.runs.store import SpooledExample
from cbench_server.runs.stuffing import stuffing_marks
from cbench_server.runs.turns import TIMED_ROWS
from cbench_server.scoring.applicability import Applicability
from cbench_server.systems.caller import Caller
from cbench_server.tokens import Tokenizer
from cbench_server.types import Evaluator, Example, ScoreInfo

if TYPE_CHECKING:
    from cbench_server.runs.money import Money

ABSTENTION = "abstention"
"""The score that counts on questions that a dataset marks as having no answer."""
_SUMMARY_SCORERS = frozenset({"summarization-quality", "rouge"})


def scores_summaries(primary_score: str, evaluators: Iterable[str]) -> bool:
    """Whether what is scored so is a summary."""
    return primary_score.startswith("rouge") or not _SUMMARY_SCORERS.isdisjoint(evaluators)


@dataclass(frozen=True)
class DatasetPlan:
    """How the rows of one dataset are made."""

    evaluators: Sequence[Evaluator]
    reference_fields: frozenset[str] = frozenset()
    """Withheld from systems."""
    primary_score: str = ""
    own_scores: tuple[str, ...] = ()
    """Scores of the dataset's own evaluators, beside which others may have been added."""
    is_score_chosen: bool = False
    """Whether one score counts on every row, on questions without an answer as well."""
    groups: tuple[str, ...] = ()
    """Fields of an example that its rows keep, to be summarised by."""

    def score_name(self, original: Example) -> str:
        """Name the score that counts on an example; what a system returned has no say in it."""
        if self._has_abstention and original.get("is_abstention"):
            return ABSTENTION
        return self.primary_score

    def marks_of(
        self, headline: str, original: Example, processed: Example, *, context_only: bool
    ) -> tuple[str, ...]:
        """Mark an output that wins a score which only looks for the answer in it."""
        if context_only:
            return stuffing_marks(original, processed) if self.applicability.retention else ()
        return padding_marks(original, processed) if headline in CONTAINMENT else ()

    def owner_of(self, score: str) -> str:
        """Name the evaluator that gives a score; the last, if there are several."""
        return self._owners.get(score, "")

    def worst_of(self, score: str) -> float | None:
        """Return what a row counts whose system made that score impossible."""
        return worst_value(self.scores.get(score))

    @cached_property
    def is_summary(self) -> bool:
        """Whether its answers are summaries, by what scores them."""
        names = {each.name for each in self.evaluators}
        return scores_summaries(self.primary_score, names)

    @cached_property
    def applicability(self) -> Applicability:
        """Which scores an example can have; a score without a name none."""
        return Applicability(self.evaluators, never=() if self.primary_score else ("",))

    @cached_property
    def scores(self) -> dict[str, ScoreInfo]:
        """The scores that the evaluators announce, by name."""
        return {score.name: score for each in self.evaluators for score in info_of(each).scores}

    @cached_property
    def _owners(self) -> dict[str, str]:
        return {score.name: each.name for each in self.evaluators for score in info_of(each).scores}

    @cached_property
    def _has_abstention(self) -> bool:
        return not self.is_score_chosen and ABSTENTION in self._owners

    def describe(self) -> dict[str, Any]:
        """Record how rows are scored."""
        return {
            "primary_score": self.primary_score,
            "own_scores": [*self.own_scores],
            "scores": {
                name: {
                    "higher_is_better": score.higher_is_better,
                    "worst": score.worst,
                    "evaluator": self.owner_of(name),
                }
                for name, score in self.scores.items()
            },
            "withheld_fields": sorted(self.reference_fields),
            "groups": [*self.groups],
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
    repeats_of: Mapping[str, int] = field(default_factory=dict)
    """Of systems that differ from the others in this."""
    row_timeout: float = 60.0
    wait_timeout: float = 600.0
    max_concurrency: int | None = None
    is_width_fixed: bool = False
    """Whether that many calls are made at once instead of at most."""
    failure_budget: FailureBudget = field(default_factory=FailureBudget)
    already_failed: int = 0
    already_completed: int = 0
    heard: frozenset[str] = frozenset()
    """Systems that have answered before, so that one which is silent is there."""
    kind: Literal["process", "memory"] = "process"
    reader: Reader | None = None
    """Answers for systems that return a context and no response."""
    answers: EarlierAnswers | None = None
    """Where answers are looked for before a system is called."""
    query_budget: int | None = None
    """The most remembered tokens a memory system may hand to a model for one question."""
    prompts: Mapping[str, Asking] = field(default_factory=dict)
    """What models are told, by dataset; nothing where there is none."""
    generation: int = 0
    """How often the run was taken up again, so that scopes of memory are never used twice."""
    timed_rows: int = TIMED_ROWS
    """How many rows of each system to call one at a time, while no other system is called."""
    seed: int = 0
    """Chooses those rows."""
    asked_again: int = 0
    """How many rows of a system to ask a second time, to see whether it is deterministic."""
    anchors: frozenset[str] = frozenset()
    """Systems whose rows are marked as an anchor's."""
    money: "Money | None" = None
    """Pays for what models charge; None if nobody knows their prices."""

    def asking(self, dataset: str) -> Asking:
        """Return what models are told with the examples of a dataset."""
        return self.prompts.get(dataset, BARE)


class ExampleSource(Protocol):
    """Where lanes read examples."""

    async def page(self, start: int, limit: int) -> list[SpooledExample]:
        """Return examples from ordinal `start` on, waiting for them; empty at the end."""
        ...

    async def completed(self, system: str, start: int, stop: int) -> set[tuple[int, int]]:
        """Return the (ordinal, repeat) of rows of `system` that need not be made."""
        ...
