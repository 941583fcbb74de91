"""Conduct of systems in words: what they did that no score shows."""

from collections.abc import Mapping
from typing import Any

from cbench_server.metrics.conduct import Conduct
from cbench_server.results import OVER_BUDGET, RETRIEVAL_POINTERS, EvalRow, Summary
from cbench_server.runs.judge_notes import Findings
from cbench_server.runs.run_rows import RunRows
from cbench_server.runs.store import RowQuery
from cbench_server.spec import Run, RunNote

UNCHANGED = "UNCHANGED"
NONDETERMINISTIC = "NONDETERMINISTIC"
_MOST_ROWS = 50_000
"""The most rows of a run whose repeats are compared when it ends."""
_OFTEN = 0.5

Twice = Mapping[str, tuple[int, int]]
"""By system: examples that were asked more than once, and those answered differently."""


async def add_conduct(found: Findings, store: RunRows, run: Run, asked_again: Twice) -> None:
    """Add what the systems of a run did, as values and as sentences."""
    twice = {**dict(run.config.get("asked_again", {})), **asked_again}
    twice |= await compared_repeats(store, run)
    add_twice(found.values, twice)
    tested = {
        name: {**run.summary.get(name, {}), **found.values.get(name, {})}
        for name in run.systems
        if not run.is_added(name)
    }
    found.notes += conduct_notes(tested, run)


async def compared_repeats(store: RunRows, run: Run) -> Twice:
    """Compare the tries of each system, where it had several."""
    if run.spec.repeats == 1 or run.completed_rows > _MOST_ROWS:
        return {}
    return {name: await _repeats(store, run, name) for name in run.ranked}


def add_twice(summary: Summary, twice: Twice) -> None:
    """Add to a summary what asking twice has shown."""
    for system, (asked, differed) in twice.items():
        if asked:
            values = {"num_asked_twice": float(asked), "num_differed": float(differed)}
            summary.setdefault(system, {}).update(values)


async def _repeats(store: RunRows, run: Run, system: str) -> tuple[int, int]:
    """Count the examples that have several answers of a system, and those that differ."""
    tries: dict[int, int] = {}
    differed: set[int] = set()
    first: tuple[int, Any] = (-1, None)
    token: str | None = None
    while True:
        page = await store.read_rows(run.run_id, RowQuery(system=system, processed=True), token)
        for row in page.rows:
            if row.failure is None:
                tries[row.ordinal] = tries.get(row.ordinal, 0) + 1
                if first[0] != row.ordinal:
                    first = (row.ordinal, _own(row))
                elif first[1] != _own(row):
                    differed.add(row.ordinal)
        token = page.next_token
        if token is None:
            return sum(count > 1 for count in tries.values()), len(differed)


def _own(row: EvalRow) -> dict[str, Any]:
    """Return what a system gave itself, without a reader's response."""
    processed = row.processed or {}
    if not row.was_read:
        return processed
    return {name: value for name, value in processed.items() if name != "response"}


def conduct_notes(summary: Summary, run: Run) -> list[RunNote]:
    """Say in words what the counts of a summary tell."""
    budget = run.spec.query_budget
    notes: list[RunNote] = []
    for system, values in summary.items():
        counts = {key: int(value) for key, value in values.items() if key in Conduct.keys and value}
        rows = counts.get("num_with_context", 0)
        unchanged = counts.get("num_unchanged", 0)
        if unchanged and unchanged >= _OFTEN * rows:
            text = f"{system} changed nothing on {unchanged:,} of {rows:,} rows."
            notes.append(RunNote(UNCHANGED, text, system))
        if pointing := counts.get("num_with_pointers"):
            text = (
                f"{system}: {pointing:,} of {rows:,} contexts hold pointers to text that is kept "
                "elsewhere. Nobody follows them here, so what they stand for counts as lost."
            )
            notes.append(RunNote(RETRIEVAL_POINTERS, text, system))
        if over := counts.get("num_over_budget"):
            text = (
                f"{system} handed over more than the budget of {budget or 0:,} tokens on {over:,} "
                f"of {rows:,} questions, up to {counts['largest_over_budget']:,}. All of them are "
                "charged."
            )
            notes.append(RunNote(OVER_BUDGET, text, system))
        if differed := counts.get("num_differed"):
            notes.append(_nondeterminism(system, differed, counts["num_asked_twice"], run))
    return notes


def _nondeterminism(system: str, differed: int, asked: int, run: Run) -> RunNote:
    repeats = run.spec.repeats
    if repeats > 1:
        text = (
            f"{system} is not deterministic: its {repeats} tries differ on {differed:,} of "
            f"{asked:,} examples ({differed / asked:.1%})."
        )
    else:
        text = (
            f"{system} is not deterministic: asked again, it answered {differed:,} of {asked:,} "
            "rows differently. Its scores are one draw of several; --repeats shows how much they "
            "vary."
        )
    return RunNote(NONDETERMINISTIC, text, system)
