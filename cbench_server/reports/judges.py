"""Judges in reports: which scores carry a mark, and what stands below a table."""

import re
from collections.abc import Iterable
from typing import Any

from cbench_server.comparison.tables import MARK as MARK
from cbench_server.spec import Run

_OF_SEVERAL = ("score", "pass rate")
"""What figures are called whose score each dataset decides."""
_OF_ONE_SCORE = ("mean_score", "task_averaged", "labelled_rate")
"""How metrics begin that end in the name of the score they are of."""
_OF_HEADLINE = (
    "mean_score",
    "pass_rate",
    "pass_at_",
    "num_passing",
    "cost_of_pass",
    "token_efficiency",
    "pareto_rank",
    "score_",
    "base_score",
    "effective_length",
    "dataset:",
    "group:",
    "suite:",
    "with_errata",
)
"""How metrics begin that are made of the score that counts."""
_ENDS = re.compile(r"(?:_stderr|_ci_low|_ci_high)$")
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


def marked_figures(run: Run) -> frozenset[str]:
    """Name the metrics of the summary that are made of such scores; intervals go with them."""
    marked = marked_scores(run)
    if not marked:
        return frozenset()
    prefixes = tuple(f"{score}_" for score in marked)
    if is_marked("score", run):
        prefixes += _OF_HEADLINE
    of_first = any(
        ":" not in record["evaluator"] for record in _records(run) if not record.get("qualified")
    )
    found = set()
    for key in {figure_of(key) for values in run.summary.values() for key in values}:
        kind, _, score = key.partition(":")
        if kind in _OF_ONE_SCORE and score:
            is_one = score in marked
        elif kind == "labelled_rate":
            is_one = of_first
        else:
            is_one = key.startswith(prefixes)
        if is_one:
            found.add(key)
    return frozenset(found)


def marks_of(run: Run) -> dict[str, str]:
    """Name all that is marked, scores and metrics, each with its mark."""
    return dict.fromkeys(sorted(marked_scores(run) | marked_figures(run)), MARK)


def figure_of(key: str) -> str:
    """Name the metric that a key, or the end of its interval, is of."""
    return _ENDS.sub("", key)


def with_mark(score: str, *runs: Run) -> str:
    """Return a score's name, marked if its judge did not pass in one of these runs."""
    return score + MARK if any(is_marked(score, run) for run in runs) else score


def headline_mark(run: Run) -> str:
    """Return what stands behind figures of the score that counts."""
    return MARK if is_marked("score", run) else ""


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
    unproven = {record["evaluator"] for record in _records(run) if not record.get("qualified")}
    marks = {evaluator: MARK if evaluator in unproven else "" for evaluator in corrected}
    return [
        f"If {evaluator}{marks[evaluator]} erred on the answers of {system} as it did on its "
        f"controls, the rate of right ones would be {each['value']:.3f} "
        f"[{each['low']:.3f}, {each['high']:.3f}]. Made-up errors are not the "
        "system's: this is a sensitivity analysis, not a score."
        for evaluator, systems in corrected.items()
        for system, each in systems.items()
    ]


def _records(run: Run) -> list[dict[str, Any]]:
    return list(run.config.get("judges") or [])


def _scores(record: dict[str, Any]) -> list[str]:
    return list(record.get("scores") or [])
