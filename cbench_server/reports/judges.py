"""Judges in reports: which scores carry a mark, and what stands below a table."""

from collections.abc import Iterable
from typing import Any

from cbench_server.comparison.tables import MARK as MARK
from cbench_server.spec import Run

_OF_SEVERAL = ("score", "pass rate")
"""What figures are called whose score each dataset decides."""
# Sentences that belong to each single figure, wherever one is shown.
_OF_FIGURES = ("JUDGE_UNQUALIFIED", "SELF_GRADED", "JUDGES_DISAGREE")


def marked_scores(run: Run) -> frozenset[str]:
    """Name the scores of judges that did not pass their controls."""
    return frozenset(
        score
        for record in _records(run)
        if not record.get("qualified")
        for score in _scores(record)
    )


def judged_scores(run: Run) -> frozenset[str]:
    """Name the scores of all judges."""
    return frozenset(score for record in _records(run) for score in _scores(record))


def with_mark(score: str, *runs: Run) -> str:
    """Return a score's name, marked if its judge did not pass in one of these runs."""
    return score + MARK if any(is_marked(score, run) for run in runs) else score


def is_marked(score: str, run: Run) -> bool:
    """Whether a figure is, or is made of, what a judge said that did not pass."""
    return not marked_scores(run).isdisjoint(_behind(score, run))


def _behind(score: str, run: Run) -> set[str]:
    """Return the scores that a figure is made of: several, where datasets count different ones."""
    if score not in _OF_SEVERAL:
        return {score}
    return {name for names in (run.config.get("headlines") or {}).values() for name in names}


def figure_notes(run: Run, scores: Iterable[str]) -> list[str]:
    """Say what must be said beside single figures of these scores."""
    behind = {name for score in scores for name in _behind(score, run)}
    if judged_scores(run).isdisjoint(behind):
        return []
    return list(dict.fromkeys(note.text for note in run.notes if note.code in _OF_FIGURES))


def sensitivity_notes(run: Run) -> list[str]:
    """Say what rates would be if the judge erred as on its controls; for the page only."""
    corrected = run.config.get("judging", {}).get("corrected", {})
    return [
        f"If {evaluator} erred on the answers of {system} as it did on its controls, the rate of "
        f"right ones would be {each['value']:.3f} [{each['low']:.3f}, {each['high']:.3f}]. Made-up "
        "errors are not the system's: this is a sensitivity analysis, not a score."
        for evaluator, systems in corrected.items()
        for system, each in systems.items()
    ]


def _records(run: Run) -> list[dict[str, Any]]:
    return list(run.config.get("judges") or [])


def _scores(record: dict[str, Any]) -> list[str]:
    return list(record.get("scores") or [])
