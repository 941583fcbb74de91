"""Means of every score: what each evaluator gave each system, on how many rows."""

from collections.abc import Collection, Sequence
from typing import Any

from cbench_server.reports.columns import main_keys
from cbench_server.reports.judges import with_mark
from cbench_server.results import Summary
from cbench_server.spec import Run
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid

MEAN = "mean_score:"
COUNT = "num_scored:"


def score_names(summary: Summary) -> list[str]:
    """Return the scores that have a mean of their own, in alphabetical order."""
    return [key.removeprefix(MEAN) for key in main_keys(summary) if key.startswith(MEAN)]


def every_score(run: Run) -> Grid | None:
    """Build the table of all scores, those that count first."""
    names = score_names(run.summary)
    counted = _counted(run)
    return _grid(run, sorted(names, key=lambda name: (name not in counted, name)), "Every score")


def added_scores(run: Run) -> Grid | None:
    """Build the table of scores that neither count nor are the datasets' own."""
    own = _own(run)
    if own is None:
        return None
    hidden = {*own, *_counted(run)}
    names = [name for name in score_names(run.summary) if name not in hidden]
    return _grid(run, names, "Other scores")


def idle_evaluators(run: Run) -> list[str]:
    """Name the evaluators that were added and have scored no row, as far as the run tells.

    Where every row failed it is not for them to say anything.
    """
    own = _own(run)
    if own is None or not run.state.is_final or run.completed_rows <= run.failed_rows:
        return []
    given = {key for values in run.summary.values() for key, value in values.items() if value}
    scored: dict[str, bool] = {}
    for dataset in run.config.get("datasets", []):
        for name, score in dataset.get("scores", {}).items():
            if name not in own and (evaluator := score.get("evaluator")):
                has_score = f"{COUNT}{name}" in given
                scored[evaluator] = scored.get(evaluator, False) or has_score
    return [evaluator for evaluator, has_score in scored.items() if not has_score]


def _grid(run: Run, names: Sequence[str], title: str) -> Grid | None:
    rows = []
    for system in run.systems:
        values = run.summary.get(system, {})
        for name in names:
            if (count := values.get(f"{COUNT}{name}")) is None:
                continue
            key = f"{MEAN}{name}"
            interval = numbers.interval(values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high"))
            mean = numbers.score(values.get(key))
            shown = f"{system} (anchor)" if system in run.anchors else system
            rows.append((shown, with_mark(name, run), mean, interval, numbers.count(count)))
    header = ("System", "Score", "Mean", "95% CI", "Rows")
    return Grid(header, tuple(rows), frozenset({1}), title=title) if rows else None


def _counted(run: Run) -> set[str]:
    recorded: dict[str, Sequence[str]] = run.config.get("headlines") or {}
    return {name for names in recorded.values() for name in names}


def _own(run: Run) -> Collection[str] | None:
    """Name the scores of the datasets' own evaluators; None for runs that did not record them."""
    datasets: list[dict[str, Any]] = run.config.get("datasets", [])
    if not all("own_scores" in each for each in datasets):
        return None
    return {name for each in datasets for name in each["own_scores"]}
