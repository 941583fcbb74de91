"""Published figures in reports: first in the table, and a table of the parts of suites."""

from collections.abc import Sequence
from dataclasses import replace

from cbench_server.metrics.suites import Suite, suites_from
from cbench_server.reports.columns import GEOMETRIC, Column, Values, interval_of
from cbench_server.reports.groups import by_part
from cbench_server.spec import Run
from cbench_server.texts import numbers
from cbench_server.texts.grid import Grid


def suites_of(run: Run) -> tuple[Suite, ...]:
    """Return the suites of which a run has all parts."""
    return suites_from(run.config.get("suites", ()))


def suites_in_all(runs: Sequence[Run]) -> list[Suite]:
    """Return the suites of which each of the runs has a figure."""
    return [suite for suite in suites_of(runs[0]) if all(_has_figure(run, suite) for run in runs)]


def _has_figure(run: Run, suite: Suite) -> bool:
    return any(values.get(suite.key) is not None for values in run.summary.values())


def headline_suite(run: Run) -> Suite | None:
    """Return the suite that a run is about: one of which every dataset is a part."""
    labels = {ref.label for ref in run.spec.datasets}
    return next((suite for suite in suites_of(run) if {*suite.parts} == labels), None)


def complete_suite(run: Run, system: str) -> Suite | None:
    """Return the suite that a run is about, and why a system has no figure of it, if it has none.

    Rows that were never made are missing from the rows themselves.
    """
    suite = headline_suite(run)
    if suite is None or run.summary.get(system, {}).get(suite.key) is not None:
        return suite
    said = (note.text for note in run.notes if note.dataset == suite.label)
    why = next(said, "").partition(": ")[2]
    return replace(suite, withheld=why or f"the run is {run.state}")


def dataset_names(run: Run) -> list[str]:
    """Name the datasets of a run; parts of a suite go by its name."""
    labels = {ref.label: None for ref in run.spec.datasets}
    names: dict[str, None] = {}
    for suite in suites_of(run):
        if suite.parts.keys() <= labels.keys():
            names[suite.label] = None
            labels = {label: None for label in labels if label not in suite.parts}
    return [*names, *labels]


def with_suites(run: Run, columns: Sequence[Column]) -> list[Column]:
    """Put published figures first; that of a whole suite replaces the mean of all rows."""
    whole = headline_suite(run)
    if own_figure(run):
        return _figure_first(columns)
    kept = [
        column for column in columns if whole is None or column.title not in ("Score", "95% CI")
    ]
    shown = [whole] if whole else suites_of(run)
    return [column for suite in shown for column in _columns(suite)] + kept


def own_figure(run: Run) -> str:
    """Return the key of a run's figure where it is not the mean of a score and systems have it."""
    key = str((run.config.get("figure") or {}).get("key", ""))
    return key if any(values.get(key) is not None for values in run.summary.values()) else ""


def _figure_first(columns: Sequence[Column]) -> list[Column]:
    """Put the figure before the mean of the rows' score, and show its interval instead."""
    key = GEOMETRIC.keys[0]
    interval = Column("95% CI", (f"{key}_ci_low",), lambda values: interval_of(values, key))
    others = [each for each in columns if each.title not in (GEOMETRIC.title, "95% CI")]
    return [GEOMETRIC, interval, *others]


def _columns(suite: Suite) -> list[Column]:
    key = suite.shown_key

    def figure(values: Values) -> str:
        return numbers.score(values.get(key))

    def interval(values: Values) -> str:
        return interval_of(values, key)

    return [Column(suite.title, (key,), figure), Column("95% CI", (f"{key}_ci_low",), interval)]


def suite_table(run: Run) -> Grid | None:
    """Build the table of all figures of suites, where there are more than the headline shows."""
    keys = suite_keys(run)
    if len(keys) < 2:
        return None
    return by_part(run.systems, run.summary, keys, "Suite", "Score by suite")


def suite_keys(run: Run) -> dict[str, str]:
    """Return the keys of all figures of suites in a summary, by what each is of."""
    return {
        f"{suite.title} {part}".strip(): key
        for suite in suites_of(run)
        for part, key in _parts(run, suite).items()
    }


def _parts(run: Run, suite: Suite) -> dict[str, str]:
    """Return the keys of a suite's figures, by what each is of."""
    parts = {"": suite.shown_key}
    if suite.kind == "categories":
        parts |= {name: f"{suite.shown_key}/{name}" for name in dict.fromkeys(suite.parts.values())}
    if suite.bucket:
        start = f"{suite.shown_key}/{suite.bucket}="
        keys = {key for values in run.summary.values() for key in values if key.startswith(start)}
        whole = [key for key in keys if not key.endswith(("_stderr", "_ci_low", "_ci_high"))]
        ordered = sorted(whole, key=_in_order)
        parts |= {key.removeprefix(f"{suite.shown_key}/"): key for key in ordered}
    return parts


def _in_order(key: str) -> tuple[float, str]:
    value = key.rpartition("=")[2]
    return (float(value) if value.isdecimal() else 0.0, key)
