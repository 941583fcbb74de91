"""Results as Markdown, for a pull request or a notebook."""

from collections.abc import Mapping

from cbench_server.reports.columns import main_keys
from cbench_server.results import Summary
from cbench_server.spec import Run
from cbench_server.texts.grid import printable
from cbench_server.texts.numbers import of_metric

# Characters with a meaning in Markdown, or in the HTML it allows. An underscore
# inside a word has none.
_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\|<>`*[]"})


def run_to_markdown(run: Run) -> str:
    """Render a stored run."""
    per_system = [progress.completed for progress in run.progress.values()]
    return to_markdown(run.summary, run.timing, max(per_system, default=0) // run.spec.repeats)


def to_markdown(summary: Summary, timing: Mapping[str, float], examples: int) -> str:
    """Render every metric of every system, the time each took, and the number of examples."""
    parts = ["# Evaluation Results"]
    keys = main_keys(summary)
    if not summary:
        parts.append("There are no results.")
    elif not keys:
        parts.append("There are no metrics.")
    else:
        parts.append(_table(summary, keys))
    if timing:
        lines = [f"- {escape(system)}: {seconds:.2f}s" for system, seconds in timing.items()]
        parts.append("\n".join(["## Timing", "", *lines]))
    parts.append(f"*{examples:,} example{'' if examples == 1 else 's'}*")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Escape text from elsewhere, so that Markdown shows it as it is."""
    return printable(text).translate(_SPECIAL)


def _table(summary: Summary, keys: list[str]) -> str:
    lines = [
        _line(["System", *map(escape, keys)]),
        _line(["---", *("---:" for _ in keys)]),
    ]
    for system, values in summary.items():
        lines.append(_line([escape(system), *(_estimate(values, key) for key in keys)]))
    return "\n".join(lines)


def _estimate(values: Mapping[str, float | None], key: str) -> str:
    """Write a value, and its 95 % interval where there is one."""
    low, high = values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high")
    text = of_metric(key, values.get(key))
    if low is None or high is None:
        return text
    return f"{text} ({of_metric(key, low)} to {of_metric(key, high)})"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
