"""The text report of a run: the tables, then the notes needed to read them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cbench_server.errors import NothingMatches
from cbench_server.reports.anchors import anchors_grid
from cbench_server.reports.columns import (
    DATASET_PREFIX,
    TIME_TITLES,
    Column,
    dataset_keys,
    headline_columns,
    type_keys,
    type_prefix,
)
from cbench_server.reports.evidence import evidence_grid
from cbench_server.reports.failure_groups import FailureGroup
from cbench_server.reports.groups import by_part, few_note, group_tables
from cbench_server.reports.judges import MARK, marked_figures, marked_scores
from cbench_server.reports.prompts import prompt_notes
from cbench_server.reports.protocols import has_other_metric, protocol_notes
from cbench_server.reports.scores import added_scores, idle_evaluators
from cbench_server.reports.suites import own_figure, suite_table, suites_of, with_suites
from cbench_server.reports.sweeps import listed, sweep_grid
from cbench_server.spec import Run, RunState
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid, printable, to_text

_REASONS_SHOWN = 3
_WHY_SHOWN = 160
MOST_ACROSS = 8
# Failures that the same spec has every time.
_HOPELESS = frozenset(
    {
        "INVALID_SPEC",
        "INVALID_ARGUMENT",
        "JUDGE_UNQUALIFIED",
        NothingMatches.reason,
        "SYSTEM_CHANGED",
    }
)
_ABSTENTION = "abstention"
_WITHOUT_RESPONSE = ("answer_retained", "answer_recall")


@dataclass(frozen=True)
class RowFacts:
    """Facts that the summary lacks and only the rows can tell."""

    failures: Mapping[str, int] = field(default_factory=dict)
    """Failed rows by reason."""
    scores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The scores that counted, by system."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Why an evaluator gave no score where it should have, by its name."""
    groups: Sequence[FailureGroup] = ()
    """Failed rows by what went wrong, as far as they were read."""


def headline(run: Run, facts: RowFacts) -> Grid:
    """Build the table: one line per system, in the order of the run."""
    columns = shown_columns(run, facts)
    titles = [title_of(column, run, facts) for column in columns]
    rows = []
    for system in listed(run):
        progress = run.progress.get(system)
        failed = numbers.count(progress.failed if progress else None)
        cells = (_shown(column, run, system) for column in columns)
        rows.append((system, *cells, failed))
    header = ["System", *titles, "Failed"]
    return Grid(*with_standing(run, facts, header, rows))


def _shown(column: Column, run: Run, system: str) -> str:
    """Show a value; what the run added by itself is not timed."""
    is_untimed = column.title in TIME_TITLES and run.is_added(system)
    return numbers.MISSING if is_untimed else column.show(run.summary.get(system, {}))


def shown_columns(run: Run, facts: RowFacts) -> list[Column]:
    """Return the columns of the table; a score that counts has its place as the headline."""
    counted = _used_scores(run, facts)
    # What only the seeds of a control have, such as pass@k, is of no interest.
    own = {name: values for name, values in run.summary.items() if not run.is_added(name)}
    columns = headline_columns(own, all_keys=bool(run.spec.metrics), counted=counted)
    return with_suites(run, columns)


def title_of(column: Column, run: Run, facts: RowFacts) -> str:
    """Name a column; that of the score by the score that counts, of times by how they came."""
    if column.title == "Score":
        return _score_title(run, facts)
    titles = {suite.title for suite in suites_of(run)}
    if column.title in titles or column.keys[0] == own_figure(run):
        return column.title + _score_marks(run, facts)
    if column.title in TIME_TITLES and {*_timed_alone(run).values()} - {0}:
        return f"{column.title} alone"
    return column.title + (MARK if column.keys[0] in marked_figures(run) else "")


def with_standing(
    run: Run, facts: RowFacts, header: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Add what a reader must know of the scores: which they are, if they differ, and on how many
    rows each stands, if not on all."""
    cells = [list(row) for row in rows]
    titles = list(header)

    def insert(place: int, title: str, texts: Sequence[str]) -> None:
        titles.insert(place, title)
        for line, text in zip(cells, texts, strict=True):
            line.insert(place, text if isinstance(line[0], str) else {"text": text})

    counted = [_scored_of(run, system) for system in listed(run)]
    if any(counted):
        insert(len(titles) - 1, "Scored", counted)
    kinds = [" and ".join(headlines(run, facts).get(system, ())) for system in listed(run)]
    place = next((n for n, title in enumerate(titles) if title.rstrip("*†") == "Score"), None)
    if place is not None and len({*kinds}) > 1:
        insert(place, "Kind", kinds)
    return tuple(titles), tuple(map(tuple, cells))


def _scored_of(run: Run, system: str) -> str:
    """Say on how many rows the score stands; nothing if that is all."""
    values, progress = run.summary.get(system, {}), run.progress.get(system)
    scored, failed = values.get("num_scored"), values.get("num_failed") or 0.0
    if scored is None or progress is None or scored + failed >= progress.completed:
        return ""
    return f"{numbers.count(scored + failed)} of {numbers.count(progress.completed)}"


def by_dataset(run: Run) -> Grid | None:
    """Build the breakdown by dataset, if there is one."""
    order = {f"{DATASET_PREFIX}{ref.label}": place for place, ref in enumerate(run.spec.datasets)}
    keys = sorted(dataset_keys(run.summary), key=lambda key: (order.get(key, len(order)), key))
    return _breakdown(run, keys, DATASET_PREFIX, "Score by dataset")


def dataset_table(run: Run) -> Grid | None:
    """Build the breakdown by dataset for a screen: many datasets are listed below each other."""
    grid = by_dataset(run)
    if grid is None or len(grid.header) <= MOST_ACROSS:
        return grid
    keys = {label: f"{DATASET_PREFIX}{label}" for label in grid.header[1:]}
    return by_part(run.systems, run.summary, keys, "Dataset", grid.title)


def by_type(run: Run) -> Grid | None:
    """Build the breakdown by type of question, if there is one."""
    prefix = type_prefix(run.summary, run.spec.score_field)
    return _breakdown(run, _type_keys(run), prefix, "Mean score by type of question")


def _breakdown(run: Run, keys: Sequence[str], prefix: str, title: str) -> Grid | None:
    if not keys:
        return None
    rows = tuple(
        (system, *(numbers.score(run.summary.get(system, {}).get(key)) for key in keys))
        for system in listed(run)
    )
    return Grid(("System", *(key.removeprefix(prefix) for key in keys)), rows, title=title)


def _type_keys(run: Run) -> list[str]:
    return type_keys(run.summary, run.spec.score_field) if run.spec.kind == "memory" else []


def _without(grid: Grid, titles: Sequence[str]) -> Grid:
    """Leave out columns that are shown in a separate table."""
    kept = [place for place, title in enumerate(grid.header) if title not in titles]
    rows = tuple(tuple(row[place] for place in kept) for row in grid.rows)
    return Grid(tuple(grid.header[place] for place in kept), rows)


def to_table(run: Run, facts: RowFacts, draw: Callable[[Grid], str] = to_text) -> str:
    """Render a run: tables, then lines."""
    parts = []
    if run.completed_rows:
        parts.append(draw(_without(headline(run, facts), _type_keys(run))))
        others, evidence = added_scores(run), evidence_grid(run)
        tables = [
            suite_table(run),
            others,
            evidence,
            dataset_table(run),
            by_type(run),
            sweep_grid(run),
            anchors_grid(run),
            *group_tables(listed(run), run.summary, run.spec.group_by),
        ]
        mark = MARK if _used_scores(run, facts) & marked_scores(run) else ""
        for grid in filter(None, tables):
            # Other scores are marked one by one, and no judge is asked about evidence.
            title = grid.title if grid in (others, evidence) else grid.title + mark
            parts.append(f"{title}\n{draw(grid)}")
    parts.append("\n".join(map(printable, notes(run, facts))))
    return "\n\n".join(parts) + "\n"


def _can_be_resumed(run: Run) -> bool:
    """Whether resuming may lead further: the same spec fails again for the same bad input."""
    if run.state not in (RunState.FAILED, RunState.CANCELLED):
        return False
    reason = run.failure.reason if run.failure else ""
    if reason == "BAD_DATASET":
        # A hub may be back, and a mirror filled; what was uploaded stays as it is.
        return not any(dataset.upload for dataset in run.spec.datasets)
    return reason not in _HOPELESS


def notes(run: Run, facts: RowFacts) -> list[str]:
    """Say what a reader of the table must know, and which command to use next."""
    lines = [*reading_notes(run, facts), state_line(run)]
    if run.failed_rows:
        lines.append(_failed_line(run, facts.failures))
        lines += [_group_line(group) for group in facts.groups[:_REASONS_SHOWN]]
    for name, message in facts.broken.items():
        lines.append(f"{name} failed on rows that now lack its scores: {message}")
    if _can_be_resumed(run):
        more = " --budget-usd MORE" if run.has_spent_budget else ""
        lines.append(f"Continue it with: cbench resume {run.run_id}{more}")
    elif run.completed_rows:
        lines.append(f"Look closer with: cbench show {run.run_id} --rows 5")
    return lines


def reading_notes(run: Run, facts: RowFacts) -> list[str]:
    """Say what a reader of the scores must know, on a terminal or on a page."""
    # Runs of earlier versions have some of their notes elsewhere.
    lines = [*_score_notes(run, facts), *run.config.get("notices", ())]
    if run.spec.expose_reference_fields:
        lines.append("References were exposed: systems could see the expected answers.")
    lines += prompt_notes(run)
    lines += _time_notes(run)
    # How a system ended is also why the run waits, or failed.
    told = state_line(run)
    lines += [note.text for note in run.notes if note.text not in told]
    lines += few_note(run.summary)
    return lines + _origin_notes(run)


def _timed_alone(run: Run) -> dict[str, int]:
    """Return on how many rows the times of each system stand; 0 means on all, under load."""
    return {
        system: int(values.get("num_timed_alone") or 0)
        for system, values in run.summary.items()
        if values.get("latency_median") is not None
        and "num_timed_alone" in values
        and not run.is_added(system)
    }


def _time_notes(run: Run) -> list[str]:
    """Say on which rows the times stand, unless the run is too old to tell."""
    by_count: dict[int, list[str]] = {}
    for system, count in _timed_alone(run).items():
        by_count.setdefault(count, []).append(system)
    said = []
    for count, systems in by_count.items():
        whose = "" if len(by_count) == 1 else f" for {', '.join(systems)}"
        said.append((f"alone, n={count}" if count else "all rows, under load") + whose)
    said += [
        f"{len(each['replicas'])} replicas of {each['name']}"
        for each in run.config.get("systems", ())
        if said and isinstance(each, dict) and each.get("replicas")
    ]
    return [f"p50 and p95: {'; '.join(said)}."] if said else []


def _origin_notes(run: Run) -> list[str]:
    """Say which answers were not given in this run."""
    if run.parent_run_id:
        return [f"Answers were rescored from {run.parent_run_id}; no system was called."]
    reused = sum(progress.reused for progress in run.progress.values())
    if not reused:
        return []
    return [f"{reused:,} of {run.completed_rows:,} answers were taken from earlier runs."]


def state_line(run: Run) -> str:
    """Say where a run stands, in one line."""
    number = f"{run.completed_rows:,}"
    if run.total_rows not in (None, run.completed_rows):
        number += f" of {run.total_rows:,}"
    rows = f"{number} row{'' if number == '1' else 's'}"
    took = ""
    if run.end_time is not None:
        took = f" in {numbers.seconds(max(0.0, run.end_time - run.create_time))}"
    reason = f": {run.waiting_reason}" if run.waiting_reason else ""
    if run.failure is not None:
        reason = f": {run.failure.message}" if run.failure.message else ""
    state = "stopped" if run.has_spent_budget else run.state
    return f"Run {run.run_id} {state}{took}, {rows}{reason}"


def _wanted_scores(run: Run) -> set[str]:
    """Return the scores that should count, by what the datasets ask for."""
    if run.spec.score_field:
        return {run.spec.score_field}
    found = {str(dataset.get("primary_score", "")) for dataset in run.config.get("datasets", [])}
    return found - {""}


def headlines(run: Run, facts: RowFacts) -> Mapping[str, Sequence[str]]:
    """Return the scores that count for each system: as its run recorded them, else its rows."""
    recorded = run.config.get("headlines")
    found = recorded if isinstance(recorded, Mapping) else facts.scores
    return {system: names for system, names in found.items() if system not in run.unranked}


def _used_scores(run: Run, facts: RowFacts) -> set[str]:
    used = {name for names in headlines(run, facts).values() for name in names}
    return used or _wanted_scores(run)


def _substitutes(run: Run, facts: RowFacts) -> set[str]:
    """Return scores that counted although the datasets ask for others."""
    wanted = _wanted_scores(run)
    found = _used_scores(run, facts) - wanted if wanted else set()
    # Where all questions without an answer failed, nobody has the score of those who abstain.
    is_given = any(values.get(f"num_scored:{_ABSTENTION}") for values in run.summary.values())
    return found if is_given else found - {_ABSTENTION}


def _score_title(run: Run, facts: RowFacts) -> str:
    names = _used_scores(run, facts)
    return (min(names) if len(names) == 1 else "Score") + _score_marks(run, facts)


def _score_marks(run: Run, facts: RowFacts) -> str:
    mark = "*" if has_other_metric(run) or _substitutes(run, facts) else ""
    return mark + (MARK if _used_scores(run, facts) & marked_scores(run) else "")


def _score_notes(run: Run, facts: RowFacts) -> list[str]:
    lines = protocol_notes(run)
    for score in sorted(_substitutes(run, facts)):
        systems = [system for system, used in headlines(run, facts).items() if score in used]
        on = "" if len(systems) == len(run.ranked) else f" on {', '.join(systems)}"
        wanted = ", ".join(sorted(_wanted_scores(run)))
        if score == _ABSTENTION:
            lines.append(_abstention_note(run, systems, wanted))
            continue
        why = "no evaluator gave that."
        if score in _WITHOUT_RESPONSE:
            why = "there was no response to score. Let a model respond with --reader URL."
        lines.append(f"* {score} stands in for {wanted}{on}: {why}")
    if idle := [name for name in idle_evaluators(run) if name not in facts.broken]:
        lines.append(
            f"{', '.join(idle)} scored no row: there was nothing to score, be it a response or a "
            "field of the examples that it needs."
        )
    chosen = run.spec.score_field
    if chosen and not any(values.get("num_scored") for values in run.summary.values()):
        lines.append(f'No row has the score "{chosen}". List all scores with: cbench evaluators')
    if any(
        values.get("mean_score") != values.get("mean_score_with_failures")
        for values in run.summary.values()
    ):
        lines.append("Rows on which a system failed count as 0.")
    return lines


def _abstention_note(run: Run, systems: Sequence[str], wanted: str) -> str:
    """Say on which rows it counts that a system says that it cannot tell."""
    key = f"num_scored:{_ABSTENTION}"
    most = max((int(run.summary.get(each, {}).get(key) or 0) for each in systems), default=0)
    rows = max(
        (run.progress[each].completed for each in systems if each in run.progress), default=0
    )
    these = "this question" if most == 1 else "these questions"
    return (
        f"* On {most:,} of {rows:,} rows the score is {_ABSTENTION}, not {wanted}: the dataset "
        f"marks {these} as having no answer, and a response that says so is right."
    )


def _group_line(group: FailureGroup) -> str:
    why = group.why if len(group.why) <= _WHY_SHOWN else f"{group.why[:_WHY_SHOWN]}…"
    return f"  {group.count:,} × {group.system}: {why}"


def _failed_line(run: Run, failures: Mapping[str, int]) -> str:
    ranked = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
    why = ", ".join(f"{reason} {number:,}" for reason, number in ranked[:_REASONS_SHOWN])
    if len(ranked) > _REASONS_SHOWN:
        why += ", ..."
    if why and (seen := sum(failures.values())) < run.failed_rows:
        why = f"of the first {seen:,}: {why}"
    rows = "row" if run.failed_rows == 1 else "rows"
    because = f" ({why})" if why else ""
    return f"{run.failed_rows:,} {rows} failed{because}: cbench show {run.run_id} --failed"
