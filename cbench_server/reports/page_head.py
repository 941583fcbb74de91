"""Head of the page, above its rows, as plain data; every number is formatted here."""

from collections.abc import Mapping
from typing import Any

from cbench_server import __version__
from cbench_server.comparison import Comparison
from cbench_server.metrics.stats.estimate import base_key
from cbench_server.metrics.verbatim_only import rewriting
from cbench_server.reports.columns import TIME_TITLES, Column, Values
from cbench_server.reports.distributions import score_distributions, stage_times
from cbench_server.reports.evidence import VERBATIM
from cbench_server.reports.json_report import iso_time
from cbench_server.reports.judges import headline_mark, sensitivity_notes, with_mark
from cbench_server.reports.page_comparison import page_comparison
from cbench_server.reports.page_groups import page_groups, page_suites, score_cell
from cbench_server.reports.page_sweep import page_sweep
from cbench_server.reports.scores import COUNT, MEAN, score_names
from cbench_server.reports.suites import dataset_names
from cbench_server.reports.sweeps import listed
from cbench_server.reports.table import (
    MOST_ACROSS,
    by_dataset,
    reading_notes,
    shown_columns,
    state_line,
    title_of,
    with_standing,
)
from cbench_server.reports.tally import Tally
from cbench_server.spec import Run
from cbench_server.texts import numbers

Cell = dict[str, Any]


def page_head(run: Run, found: Tally, comparison: Comparison | None) -> dict[str, Any]:
    """Collect everything but the rows."""
    return {
        "version": __version__,
        "run": _run(run),
        "systems": _systems(run, comparison),
        "threshold": run.spec.threshold,
        "references": _references(run),
        "notes": _notes(run, found),
        "headline": _headline(run, found),
        "comparison": page_comparison(comparison) if comparison else None,
        "sweep": page_sweep(run),
        "scores": _scores(run),
        "suites": page_suites(run),
        **_datasets(run),
        "groups": page_groups(run),
        "distributions": [
            {**each, "score": with_mark(each["score"], run)}
            for each in score_distributions(found, listed(run))
        ],
        "times": stage_times(found, listed(run)),
        "failures": _failures(found),
    }


def _systems(run: Run, comparison: Comparison | None) -> list[str]:
    """Name the run's own systems, whose numbers the rows use, then those compared with."""
    compared = comparison.systems if comparison else ()
    own = [f"{name} (anchor)" if name in run.anchors else name for name in run.systems]
    return list(dict.fromkeys([*own, *compared]))


def _run(run: Run) -> dict[str, Any]:
    took = None if run.end_time is None else max(0.0, run.end_time - run.create_time)
    return {
        "id": run.run_id,
        "state": str(run.state),
        "created": iso_time(run.create_time),
        "took": numbers.seconds(took),
        "rows": run.completed_rows,
        "failed": run.failed_rows,
        "datasets": dataset_names(run),
        "labels": run.spec.given_labels,
        "parent": run.parent_run_id,
    }


def _notes(run: Run, found: Tally) -> list[str]:
    """Say what the table needs to be read right; the page shows the rest elsewhere."""
    lines = [*reading_notes(run, found.facts), *sensitivity_notes(run)]
    return [*lines, state_line(run)] if run.failure else lines


def _references(run: Run) -> list[str]:
    """Name the fields that hold expected answers, as the run kept them from its systems."""
    datasets = run.config.get("datasets", [])
    return sorted({name for each in datasets for name in each.get("withheld_fields", [])})


def _headline(run: Run, found: Tally) -> dict[str, Any]:
    # An interval is shown in the cell of its value, not in a separate column.
    shown = [
        column
        for column in shown_columns(run, found.facts)
        if base_key(column.keys[0]) == column.keys[0]
    ]
    header = ["System", *(title_of(column, run, found.facts) for column in shown), "Failed"]
    rows = []
    for system in listed(run):
        values, progress = run.summary.get(system, {}), run.progress.get(system)
        failed = {"text": numbers.count(progress.failed if progress else None)}
        is_added = run.is_added(system)
        line: list[Cell] = [
            {"text": numbers.MISSING}
            if is_added and column.title in TIME_TITLES
            else _cell(column, values)
            for column in shown
        ]
        rows.append([{"text": system}, *line, failed])
    titles, cells = with_standing(run, found.facts, header, rows)
    return {"titles": [*titles], "rows": [[*line] for line in cells]}


def _cell(column: Column, values: Values) -> Cell:
    key = next((key for key in column.keys if values.get(key) is not None), column.keys[0])
    return {
        "text": column.show(values),
        "value": values.get(key),
        **_interval(values, key, lambda bound: column.show({key: bound})),
    }


def _interval(values: Values, key: str, show: Any) -> Cell:
    low, high = values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high")
    if low is None or high is None:
        return {}
    shown = f"{show(low)} to {show(high)}"
    # A column of several values, such as tokens before and after, has no interval.
    return {} if numbers.MISSING in shown else {"low": low, "high": high, "interval": shown}


def _datasets(run: Run) -> dict[str, Any]:
    """Give the means by dataset: beside each other, or below each other where there are many."""
    grid = by_dataset(run)
    if grid is None:
        return {"datasets": None, "parts": None}
    labels, mark = grid.header[1:], headline_mark(run)
    lines = {
        system: [score_cell(run.summary.get(system, {}), f"dataset:{each}") for each in labels]
        for system in listed(run)
    }
    if len(grid.header) <= MOST_ACROSS:
        rows = [[{"text": system}, *cells] for system, cells in lines.items()]
        titles = [grid.header[0], *(label + mark for label in labels)]
        return {"datasets": {"titles": titles, "rows": rows}, "parts": None}
    rows = [
        [{"text": label}, *(cells[place] for cells in lines.values())]
        for place, label in enumerate(labels)
    ]
    titles = [f"Dataset{mark}", *lines]
    return {"datasets": None, "parts": {"field": "dataset", "titles": titles, "rows": rows}}


def _scores(run: Run) -> dict[str, Any] | None:
    """Give the mean of every score, and how many rows have it, where that is not all."""
    names = score_names(run.summary)
    if not names:
        return None
    rows: list[list[Cell]] = []
    for system in run.systems:
        values, progress = run.summary.get(system, {}), run.progress.get(system)
        line: list[Cell] = [{"text": system}]
        for name in names:
            cell = score_cell(values, f"{MEAN}{name}")
            count = values.get(f"{COUNT}{name}")
            if count is not None and progress is not None and count < progress.completed:
                cell["text"] += f" ({numbers.count(count)} rows)"
            if count and name.startswith("evidence_") and system in rewriting(run.notes):
                cell["text"] += f" ({VERBATIM})"
            line.append(cell)
        rows.append(line)
    return {"titles": ["System", *(with_mark(name, run) for name in names)], "rows": rows}


def _failures(found: Tally) -> list[dict[str, Any]]:
    lines = []
    counted: tuple[tuple[str, Mapping[Any, int]], ...] = (
        ("row", found.failures),
        ("evaluator", found.evaluator_failures),
    )
    for what, kinds in counted:
        for kind, number in sorted(kinds.items(), key=lambda item: (-item[1], str(item[0]))):
            lines.append(
                {
                    "what": what,
                    "system": kind.system,
                    "origin": kind.origin,
                    "reason": kind.reason,
                    "count": number,
                    "message": found.messages[kind][:500],
                }
            )
    return lines
