"""Tables by group: the score of each system on each value of a field of the examples."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cbench_server.metrics.groups import FEW_ROWS, group_order
from cbench_server.metrics.outcomes import score_infos
from cbench_server.metrics.per_group import PREFIX, ROWS, PerGroup
from cbench_server.metrics.summary import Summarizer
from cbench_server.results import EvalRow, Summary
from cbench_server.spec import Run
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid

_AT_ONCE = 1000


def summarized_by(
    fields: Sequence[str], run: Run, rows: Iterable[EvalRow], score_field: str | None = None
) -> Summary:
    """Summarise rows by fields that they keep; they are read once."""
    scores = score_infos(run.config.get("datasets", ()))
    summarizer = Summarizer([PerGroup(fields, score_field)], run.systems, scores)
    batch: list[EvalRow] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _AT_ONCE:
            summarizer.extend(batch)
            batch = []
    summarizer.extend(batch)
    return summarizer.result().summary


def group_fields(summary: Summary, order: Sequence[str] = ()) -> list[str]:
    """Name the fields that a summary has groups of; those in `order` first."""
    keys = dict.fromkeys(key for values in summary.values() for key in values)
    found = dict.fromkeys(_split(key)[0] for key in keys if key.startswith(ROWS))
    return [*(field for field in order if field in found), *(f for f in found if f not in order)]


def groups_in(summary: Summary, field: str) -> list[str]:
    """Name the groups of a field, in order."""
    found = {
        name
        for values in summary.values()
        for key in values
        if key.startswith(ROWS)
        for own, name in [_split(key)]
        if own == field
    }
    return sorted(found, key=group_order)


def _split(key: str) -> tuple[str, str]:
    field, _, name = key.removeprefix(ROWS).partition("=")
    return field, name


def by_group(systems: Sequence[str], summary: Summary, field: str) -> Grid:
    """Build the table of a field: a line for each group, the systems beside each other."""
    names = groups_in(summary, field)
    lines = [
        (name, *_figures(systems, summary, f"{PREFIX}{field}={name}"), _rows(summary, field, name))
        for name in names
    ]
    header = (field, *_titles(systems), "Rows")
    return Grid(header, tuple(lines), title=f"Score by {field}")


def by_part(
    systems: Sequence[str], summary: Summary, keys: Mapping[str, str], corner: str, title: str
) -> Grid:
    """Build a table like that of a field for other keys, each under its name."""
    lines = [(name, *_figures(systems, summary, key)) for name, key in keys.items()]
    return Grid((corner, *_titles(systems)), tuple(lines), title=title)


def _titles(systems: Sequence[str]) -> tuple[str, ...]:
    return tuple(title for system in systems for title in (system, "95% CI"))


def _figures(systems: Sequence[str], summary: Summary, key: str) -> Iterable[str]:
    for system in systems:
        values = summary.get(system, {})
        yield numbers.score(values.get(key))
        yield numbers.interval(values.get(f"{key}_ci_low"), values.get(f"{key}_ci_high"))


def rows_in(summary: Summary, field: str, name: str) -> tuple[int, int]:
    """Return on how many rows of a group the scores stand: the fewest and the most of a system."""
    key = f"{ROWS}{field}={name}"
    counts = [int(values.get(key) or 0) for values in summary.values()]
    return min(counts, default=0), max(counts, default=0)


def _rows(summary: Summary, field: str, name: str) -> str:
    fewest, most = rows_in(summary, field, name)
    text = numbers.count(most) if fewest == most else f"{fewest:,} to {most:,}"
    return f"{text} (few)" if fewest < FEW_ROWS else text


def group_tables(systems: Sequence[str], summary: Summary, order: Sequence[str] = ()) -> list[Grid]:
    """Build the table of each field that a summary has groups of."""
    return [by_group(systems, summary, field) for field in group_fields(summary, order)]


def few_note(summary: Summary) -> list[str]:
    """Say what few rows mean, where a group has few."""
    pairs = [(field, name) for field in group_fields(summary) for name in groups_in(summary, field)]
    if not any(rows_in(summary, *pair)[0] < FEW_ROWS for pair in pairs):
        return []
    return [f'A group with fewer than {FEW_ROWS} rows is marked "few": see its interval.']


def plain_groups(systems: Sequence[str], summary: Summary) -> dict[str, Any]:
    """Give the figures of all groups as plain data, by field, group and system."""
    return {
        field: {
            name: {system: _plain(summary.get(system, {}), field, name) for system in systems}
            for name in groups_in(summary, field)
        }
        for field in group_fields(summary)
    }


def _plain(values: Mapping[str, float | None], field: str, name: str) -> dict[str, float | None]:
    key = f"{PREFIX}{field}={name}"
    return {
        "score": values.get(key),
        "ci_low": values.get(f"{key}_ci_low"),
        "ci_high": values.get(f"{key}_ci_high"),
        "rows": values.get(f"{ROWS}{field}={name}"),
    }
