"""Notes on anchors: how far a reader differs from itself, and what it answers unread."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cbench_server.comparison.raters import as_proven
from cbench_server.errors import InvalidInput
from cbench_server.metrics import PassRate, Summarizer
from cbench_server.metrics.outcomes import score_infos
from cbench_server.results import EvalRow
from cbench_server.runs.plan import ABSTENTION
from cbench_server.runs.run_rows import RunRows
from cbench_server.runs.store import RowKey
from cbench_server.spec import Run, RunNote
from cbench_server.texts import numbers
from cbench_server.types import ScoreInfo

NOISE_FLOOR = "NOISE_FLOOR"
GUESSABLE = "GUESSABLE"


@dataclass(frozen=True)
class _Arms:
    """The rows of a run's anchors, by example."""

    whole: str
    first: list[EvalRow]
    again: list[EvalRow]
    without: list[EvalRow]


async def anchor_notes(store: RunRows, run: Run) -> tuple[RunNote, ...]:
    """Say how large the noise of the run's reader is, and how many questions it guesses."""
    anchors: Mapping[str, Any] | None = run.config.get("anchors")
    if not anchors:
        return ()
    first = await _rows(store, run, anchors["first"], anchors["examples"])
    repeat = int(anchors["again"] == anchors["first"])
    again = await _rows(store, run, anchors["again"], anchors["examples"], repeat)
    unread = next((arm["name"] for arm in anchors["arms"] if arm["builtin"] == "no-context"), "")
    without = await _rows(store, run, unread, anchors["asked"]) if unread else {}
    both = [ordinal for ordinal in first if ordinal in again]
    arms = _Arms(
        anchors["whole"],
        [first[ordinal] for ordinal in both],
        [again[ordinal] for ordinal in both],
        list(without.values()),
    )
    return tuple(await asyncio.to_thread(_notes, arms, run))


async def _rows(
    store: RunRows, run: Run, system: str, ordinals: Sequence[int], repeat: int = 0
) -> dict[int, EvalRow]:
    keys = [RowKey(run.run_id, ordinal, system, repeat) for ordinal in ordinals]
    found = await store.read_rows_at(keys)
    return {row.ordinal: row for row in found if row is not None}


def _notes(arms: _Arms, run: Run) -> list[RunNote]:
    scores = score_infos(run.config.get("datasets", ()))
    judges = run.config.get("judges") or ()
    rows = [*arms.first, *arms.again, *arms.without]
    found = []
    if text := _noise(arms, run, scores):
        found.append(RunNote(NOISE_FLOOR, as_proven(text, rows, judges)))
    if text := _guessable(arms, run, scores):
        found.append(RunNote(GUESSABLE, as_proven(text, rows, judges)))
    return found


def _noise(arms: _Arms, run: Run, scores: Mapping[str, ScoreInfo]) -> str:
    """Compare what the reader made of the same prompts, asked twice."""
    from cbench_server.comparison import compare

    pairs = [
        (one, other)
        for one, other in zip(arms.first, arms.again, strict=True)
        if one.was_read and other.was_read
    ]
    if not pairs:
        return ""
    rows = f"{len(pairs):,} rows"
    words = sum(_response(one) != _response(other) for one, other in pairs)
    said = f"The reader, given {arms.whole} twice, differed from itself"
    sides = {"first": [one for one, _ in pairs], "again": [other for _, other in pairs]}
    try:
        (pair,) = compare(sides, threshold=run.spec.threshold, scores=scores).pairs
    except InvalidInput:
        return f"{said} in its words on {words:,} of {rows}; none of them has a score."
    low, high = pair.difference.low, pair.difference.high
    changed = pair.wins + pair.losses
    text = (
        f"{said} in its score on {changed:,} of {rows}, in its words on {words:,}; mean difference "
        f"{pair.difference.value or 0.0:+.3f}"
    )
    if low is None or high is None:
        return f"{text}, from too few rows to say how much of a difference is noise."
    floor = max(abs(low), abs(high))
    return (
        f"{text} (95% CI {low:+.3f} to {high:+.3f}). Differences below {floor:.3f} on so many rows "
        "are within the noise of this model."
    )


def _response(row: EvalRow) -> Any:
    return (row.processed or {}).get("response")


def _guessable(arms: _Arms, run: Run, scores: Mapping[str, ScoreInfo]) -> str:
    """Say on how many questions the reader passes without the context, and how many with it.

    Questions without an answer are left out: there, not to know is right.
    """
    unread = [row for row in arms.without if row.was_read and row.primary_score != ABSTENTION]
    asked = {row.ordinal for row in unread}
    read = [row for row in arms.first if row.was_read and row.ordinal in asked]
    rates = {
        name: Summarizer([PassRate(run.spec.threshold)], [name], scores)
        for name in ("without", "with")
    }
    rates["without"].extend([_named(row, "without") for row in unread])
    rates["with"].extend([_named(row, "with") for row in read])
    values = {name: each.result().summary[name] for name, each in rates.items()}
    without, whole = values["without"], values["with"]
    if without.get("pass_rate") is None:
        return ""
    interval = _shares(without.get("pass_rate_ci_low"), without.get("pass_rate_ci_high"))
    text = (
        f"{numbers.share(without['pass_rate'])}{interval} of "
        f"{numbers.count(without.get('num_scored'))} questions are answered without the context"
    )
    if whole.get("pass_rate") is not None:
        text += f", {numbers.share(whole['pass_rate'])} with all of it"
    return f"{text} (a score of at least {run.spec.threshold:g})."


def _named(row: EvalRow, name: str) -> EvalRow:
    from msgspec.structs import replace

    return replace(row, system=name)


def _shares(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f" (95% CI {numbers.share(low)} to {numbers.share(high)})"
