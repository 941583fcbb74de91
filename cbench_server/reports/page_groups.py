"""Groups and suites on the page, as plain data with every number formatted."""

from typing import Any

from cbench_server.metrics.per_group import PREFIX
from cbench_server.metrics.stats.estimate import Estimate
from cbench_server.reports.columns import Values
from cbench_server.reports.groups import by_group, group_fields, groups_in
from cbench_server.reports.judges import headline_mark
from cbench_server.reports.suites import suite_keys
from cbench_server.spec import Run
from cbench_server.texts import numbers

Cell = dict[str, Any]


def page_groups(run: Run) -> list[dict[str, Any]]:
    """Give a table for each field: a line for each group, a column for each system."""
    tables = []
    for field in group_fields(run.summary, run.spec.group_by):
        grid = by_group(run.systems, run.summary, field)
        rows = [
            [
                {"text": name},
                *(
                    score_cell(run.summary.get(system, {}), f"{PREFIX}{field}={name}")
                    for system in run.systems
                ),
                {"text": line[-1]},
            ]
            for name, line in zip(groups_in(run.summary, field), grid.rows, strict=True)
        ]
        titles = [field + headline_mark(run), *run.systems, "Rows"]
        tables.append({"field": field, "titles": titles, "rows": rows})
    return tables


def page_suites(run: Run) -> dict[str, Any] | None:
    """Give the figures of suites, their categories and buckets; a line for each system."""
    keys = suite_keys(run)
    if len(keys) < 2:
        return None  # The headline shows it.
    rows = [
        [{"text": system}, *(score_cell(run.summary.get(system, {}), key) for key in keys.values())]
        for system in run.systems
    ]
    return {"titles": ["System", *(key + headline_mark(run) for key in keys)], "rows": rows}


def score_cell(values: Values, key: str) -> Cell:
    """Give a score with its interval, where it has one."""
    known = Estimate(
        values.get(key), None, values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high")
    )
    cell: Cell = {"text": numbers.score(known.value), "value": known.value}
    if known.low is None or known.high is None:
        return cell
    interval = f"{numbers.score(known.low)} to {numbers.score(known.high)}"
    return {**cell, "low": known.low, "high": known.high, "interval": interval}
