"""Rows that were made before: given their place in another run, or rescored."""

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from cbench_server.metrics.groups import groups_of
from cbench_server.models.account import ACCOUNT, OWN_COSTS, Account
from cbench_server.results import JUDGE_PROMPT_CUT, PADDED, STUFFED, EvalRow
from cbench_server.runs.context_tokens import forget_untold, row_tells_context
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.rows import charge_system, cut_marks, not_applicable, set_headline
from cbench_server.runs.store import SpooledExample
from cbench_server.scoring.assessment import is_context_only
from cbench_server.scoring.placement import ScoredRow, Scoring
from cbench_server.systems.caller import texts_carried
from cbench_server.types import Example


def recorded_row(recorded: EvalRow, spooled: SpooledExample, groups: Sequence[str] = ()) -> EvalRow:
    """Give a row that was made before its place in this run; what it took to make it stands."""
    row = replace(
        recorded,
        example_id=spooled.example["id"],
        dataset=spooled.dataset,
        index=spooled.index,
        ordinal=spooled.ordinal,
        group=str(spooled.example.get("group") or ""),
        queue_time=0.0,
        reused=True,
        groups=groups_of(spooled.example, groups),
    )
    forget_untold(row, spooled.example)
    return row


async def rescore(
    row: EvalRow,
    example: Example,
    dataset: DatasetPlan,
    scoring: Scoring,
    clock: Callable[[], float],
    account: Account | None = None,
) -> EvalRow:
    """Score an answer that was given before; a row without one stays as it is.

    The `account` pays for what judges charge.
    """
    if row.processed is None:
        await asyncio.to_thread(set_headline, row, example, dataset)
        return row
    started = clock()
    account = account or Account()
    token = ACCOUNT.set(account)
    try:
        scored = await scoring.score_row(
            dataset.evaluators,
            example,
            row.processed,
            tells_context=row_tells_context(row, example),
        )
    finally:
        ACCOUNT.reset(token)
    set_scores(row, example, scored, dataset, clock() - started)
    account.settle(row)
    row.carried = texts_carried(row.processed, example)
    return row


def set_scores(
    row: EvalRow, example: Example, scored: ScoredRow, dataset: DatasetPlan, seconds: float
) -> None:
    """Replace what the evaluators said of a row, and how long they took."""
    headline = dataset.score_name(example)
    if headline not in scored.scores:
        charge_system(scored, headline, dataset)
    row.context_only = is_context_only(row.processed or {})
    forget_untold(row, example)
    row.not_applicable = not_applicable(dataset, example, scored, context_only=row.context_only)
    row.scores = scored.scores
    # What was judged before is judged anew.
    row.cost_usd = {who: usd for who, usd in row.cost_usd.items() if who in OWN_COSTS}
    row.primary_score = headline
    row.scoring_time = seconds
    row.details = scored.details
    row.evaluator_failures = scored.failures
    row.marks = (
        *(mark for mark in row.marks if mark not in (JUDGE_PROMPT_CUT, PADDED, STUFFED)),
        *dataset.marks_of(headline, example, row.processed or {}, context_only=row.context_only),
        *cut_marks(scored),
    )
