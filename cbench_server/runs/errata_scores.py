"""Scores with errata: the rows of a run, those of mended examples rescored."""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

from cbench_server.metrics.summary import Summarizer
from cbench_server.results import EvalRow
from cbench_server.runs.errata import Ceilings, Errata, corrected
from cbench_server.runs.judge_notes import Findings
from cbench_server.runs.plan import DatasetPlan
from cbench_server.runs.recorded_rows import rescore
from cbench_server.runs.run_rows import RunRows
from cbench_server.runs.store import RowQuery
from cbench_server.runs.verdicts import category_of
from cbench_server.scoring.placement import Scoring
from cbench_server.spec import Run
from cbench_server.types import Example

_PAGE = 512


async def rows_with_originals(
    store: RunRows, run_id: str, system: str
) -> AsyncIterator[tuple[EvalRow, Example]]:
    """Read the rows of a system with what it returned and what it was given."""
    query = RowQuery(system=system, processed=True, original=True, limit=_PAGE)
    token: str | None = None
    while True:
        page = await store.read_rows(run_id, query, token)
        for pair in zip(page.rows, page.originals or [], strict=True):
            yield pair
        token = page.next_token
        if token is None:
            return


async def add_errata(
    found: Findings,
    store: RunRows,
    run: Run,
    errata: Errata,
    plans: Mapping[str, DatasetPlan],
    scoring: Scoring,
    summarizer: Summarizer,
    clock: Callable[[], float],
) -> None:
    """Add what the scores are with errata, and the ceiling of those without."""
    actions: Counter[str] = Counter()
    ceilings: dict[str, Ceilings] = defaultdict(Ceilings)
    by_category: dict[tuple[str, str], dict[str, list[float]]] = {}
    unproven = {
        score
        for record in run.config.get("judges") or []
        if not record["qualified"]
        for score in record["scores"]
    }
    marks: dict[str, str] = {}
    for place, system in enumerate(run.systems):
        async for row, original in rows_with_originals(store, run.run_id, system):
            known = errata.of(row.dataset, row.example_id)
            category = category_of(row)
            if row.score is not None:
                if row.score_name in unproven:
                    marks[system] = "†"
                scores = by_category.setdefault((system, row.dataset), defaultdict(list))
                for name in dict.fromkeys(("", category)):
                    scores[name].append(row.score)
            if place == 0 and row.repeat == 0:
                ceilings[row.dataset].take(category, known)
                actions.update([each.action for each in known] or [""])
            if known:
                mended = corrected(original, known)
                if mended is None:
                    continue
                row = await rescore(replace(row), mended, plans[row.dataset], scoring, clock)
            summarizer.extend([replace(row, processed=None)])
    summary = summarizer.result().summary
    best = {label: each.describe() for label, each in ceilings.items()}
    found.facts["errata"] = {"examples": dict(actions), "ceilings": best}
    for system in run.systems:
        _say(found, run, system, summary.get(system, {}), actions, marks.get(system, ""))
        for label, most in best.items():
            _flag(found, system, label, most, by_category.get((system, label), {}))


def _say(
    found: Findings,
    run: Run,
    system: str,
    values: Mapping[str, Any],
    actions: Counter[str],
    mark: str,
) -> None:
    key = "mean_score_with_failures" if "mean_score_with_failures" in values else "mean_score"
    mean = values.get(key)
    published = run.summary.get(system, {}).get(key)
    if mean is None:
        return
    ends = {f"with_errata_ci_{end}": values.get(f"{key}_ci_{end}") for end in ("low", "high")}
    found.values.setdefault(system, {}).update({"with_errata": mean, **ends})
    before = "none" if published is None else f"{published:.3f}{mark}"
    touched = ", ".join(f"{count:,} {action}" for action, count in actions.items() if action)
    after = f"{mean:.3f}{mark} with errata ({touched or 'none apply'})"
    text = f"{system}: {before} as published, {after}."
    found.note("ERRATA", text, system=system)


def _flag(
    found: Findings,
    system: str,
    dataset: str,
    ceilings: Mapping[str, float],
    scores: Mapping[str, list[float]],
) -> None:
    """Say where a score is higher than right answers could reach with wrong references."""
    for category, ceiling in ceilings.items():
        values = scores.get(category) or []
        mean = sum(values) / len(values) if values else 0.0
        if mean > ceiling + 1e-9:
            name = category or "all questions"
            text = (
                f"{system} scores {mean:.3f} on {name}, above the ceiling of {ceiling:.3f} that "
                "the wrong references as published leave: it agrees with mistakes."
            )
            found.note("ABOVE_CEILING", text, dataset, system)
