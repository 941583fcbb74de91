"""Results as Markdown, for a pull request or a notebook."""

from collections.abc import Collection, Mapping

from cbench_server.metrics.per_group import PREFIX as GROUP
from cbench_server.metrics.per_group import ROWS as GROUP_ROWS
from cbench_server.reports.columns import UNKNOWN, main_keys
from cbench_server.reports.groups import group_tables
from cbench_server.reports.judges import MARK, marked_figures
from cbench_server.reports.table import RowFacts, reading_notes
from cbench_server.results import Summary
from cbench_server.spec import Run
from cbench_server.texts.grid import Grid, printable
from cbench_server.texts.numbers import of_metric

# Characters with a meaning in Markdown, or in the HTML it allows. An underscore
# inside a word has none.
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\|<>`*[]"})


def run_to_markdown(run: Run) -> str:
    """Render a stored run, with what a reader of its figures must know."""
    per_system = [progress.completed for progress in run.progress.values()]
    examples = max(per_system, default=0) // run.spec.repeats
    text = to_markdown(run.summary, run.timing, examples, marked_figures(run))
    notes = [f"- {escape(line)}" for line in reading_notes(run, RowFacts())]
    return "\n".join([text, "## Notes", "", *notes, ""]) if notes else text


def to_markdown(
    summary: Summary,
    timing: Mapping[str, float],
    examples: int,
    unproven: Collection[str] = (),
) -> str:
    """Render every metric of every system, the time each took, and the number of examples.

    Metrics that are unproven, as of a judge that did not pass, are marked.
    """
    parts = ["# Evaluation Results"]
    # Groups are many, so each field has a table of its own.
    keys = [key for key in main_keys(summary) if not key.startswith((GROUP, GROUP_ROWS))]
    if not summary:
        parts.append("There are no results.")
    elif not keys:
        parts.append("There are no metrics.")
    else:
        parts.append(_table(summary, {key: MARK if key in unproven else "" for key in keys}))
    mark = MARK if any(key.startswith(GROUP) for key in unproven) else ""
    for grid in group_tables([*summary], summary):
        parts.append(f"## {escape(grid.title)}{mark}\n\n{grid_to_markdown(grid)}")
    if timing:
        lines = [f"- {escape(system)}: {seconds:.2f}s" for system, seconds in timing.items()]
        parts.append("\n".join(["## Timing", "", *lines]))
    parts.append(f"*{examples:,} example{'' if examples == 1 else 's'}*")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Escape text from elsewhere, so that Markdown shows it as it is."""
    return printable(text).translate(_SPECIAL)


def grid_to_markdown(grid: Grid) -> str:
    """Render a table."""
    rule = ["---" if grid.is_left(column) else "---:" for column in range(len(grid.header))]
    cells = [[*map(escape, grid.header)], rule, *([*map(escape, row)] for row in grid.rows)]
    return "\n".join(map(_line, cells))


def _table(summary: Summary, keys: Mapping[str, str]) -> str:
    lines = [
        _line(["System", *(escape(key + mark) for key, mark in keys.items())]),
        _line(["---", *("---:" for _ in keys)]),
    ]
    for system, values in summary.items():
        lines.append(_line([escape(system), *(_estimate(values, key) for key in keys)]))
    return "\n".join(lines)


def _estimate(values: Mapping[str, float | None], key: str) -> str:
    """Write a value, and its 95 % interval where there is one."""
    low, high = values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high")
    if key == "context_compression" and values.get(key) is None:
        return UNKNOWN
    text = of_metric(key, values.get(key))
    if low is None or high is None:
        return text
    return f"{text} ({of_metric(key, low)} to {of_metric(key, high)})"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
