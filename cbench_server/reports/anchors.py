"""Anchors of a run in a table of their own: they are no systems to choose from."""

from cbench_server.reports.suites import own_figure
from cbench_server.spec import Run
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid


def anchors_grid(run: Run) -> Grid | None:
    """Build the table of anchors, if there are any."""
    rows = []
    for name in run.unranked:
        values, progress = run.summary.get(name, {}), run.progress.get(name)
        key = own_figure(run) or "mean_score_with_failures"
        figure = values.get(key, values.get("mean_score"))
        ends = values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high")
        passed = values.get("pass_rate_with_failures", values.get("pass_rate"))
        count = progress.completed if progress else None
        failed = progress.failed if progress else None
        rows.append(
            (
                name,
                numbers.score(figure),
                numbers.interval(*ends),
                numbers.share(passed),
                numbers.count(count),
                numbers.count(failed),
            )
        )
    are_anchors = run.anchors == run.unranked
    header = ("Anchor" if are_anchors else "Arm", "Score", "95% CI", "Passed", "Rows", "Failed")
    title = "Anchors, never ranked" if are_anchors else "Arms that are never ranked"
    return Grid(header, tuple(rows), title=title) if rows else None
