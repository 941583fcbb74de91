"""Wiring of a dataset: which evaluators score it, and which of their scores counts."""

import difflib
from collections.abc import Iterable, Sequence

from cbench_server.contract import info_of
from cbench_server.datasets.protocol import DatasetProtocol, uses
from cbench_server.datasets.record import DEFAULT_REFERENCE_FIELDS
from cbench_server.errors import InvalidSpec
from cbench_server.runs.plan import DatasetPlan
from cbench_server.spec import EvaluatorRef
from cbench_server.types import Evaluator, Example

UNKNOWN_PROTOCOL = DatasetProtocol(
    shown=(),
    withheld=DEFAULT_REFERENCE_FIELDS,
    evaluators=uses("answer-quality", "context-retention"),
)
"""What examples are measured by of which nothing is known."""
_ALWAYS = ("context-retention",)


def own_evaluators(protocol: DatasetProtocol, kind: str) -> tuple[EvaluatorRef, ...]:
    """Return the evaluators of a dataset, with their settings."""
    always = ("abstention", *_ALWAYS) if kind == "memory" else _ALWAYS
    wanted = protocol.evaluator_names
    return (*protocol.evaluators, *uses(*(name for name in always if name not in wanted)))


def primary_score(protocol: DatasetProtocol, replacing: Sequence[Evaluator] | None) -> str:
    """Name the score that counts: the dataset's own.

    Where other evaluators replace those of the dataset and none gives that
    score, it is the first that they announce.
    """
    wanted = protocol.primary_score
    if replacing is None:
        return wanted
    announced = announced_scores(replacing)
    return wanted if wanted in announced or not announced else announced[0]


def announced_scores(evaluators: Iterable[Evaluator]) -> tuple[str, ...]:
    """Name the scores that evaluators say they give."""
    return tuple(score.name for each in evaluators for score in info_of(each).scores)


def missing_references(tag: str, plan: DatasetPlan, originals: Iterable[Example]) -> str:
    """Say so where the score that counts applies to none of the examples; empty if to any.

    Reads no further than the first example that has what it takes.
    """
    score = plan.primary_score
    if not score:
        # It is named by the first row that is scored.
        return ""
    is_empty = True
    for original in originals:
        is_empty = False
        if plan.score_name(original) not in plan.applicability.missing(original):
            return ""
    if is_empty or not plan.evaluators:
        return ""
    where = f'of "{tag}" ' if tag else ""
    return (
        f"No headline score: no example {where}has what {score} is scored by, such as an "
        "`answer`. Sizes and times are measured all the same."
    )


def check_score_field(name: str, plans: Iterable[DatasetPlan]) -> None:
    """Refuse a score that no evaluator gives, unless one does not say what it gives."""
    evaluators = [evaluator for plan in plans for evaluator in plan.evaluators]
    known = list(dict.fromkeys(announced_scores(evaluators)))
    if not name or name in known or not all(announced_scores([each]) for each in evaluators):
        return
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f'Did you mean "{near[0]}"?' if near else f"There are: {', '.join(known) or 'none'}."
    raise InvalidSpec(
        f'score_field: no evaluator of this run gives "{name}". {hint}', field="spec.score_field"
    )
