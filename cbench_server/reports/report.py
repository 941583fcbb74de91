"""The report that a reporter gets: a run, and its rows to read as often as it needs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from cbench_server.errors import InvalidInput
from cbench_server.reports.judges import figure_notes, with_mark
from cbench_server.reports.suites import own_figure, suites_in_all
from cbench_server.results import EvalResult, EvalRow
from cbench_server.spec import DatasetRef, Run, RunNote, RunSpec, RunState, SystemProgress

if TYPE_CHECKING:
    from cbench_server.comparison import Comparison, PairedDifference

Original = dict[str, Any]
FullRow = tuple[EvalRow, Original | None]


@dataclass(frozen=True)
class Report:
    """A run to report. Rows are read from the store as needed, never all at once."""

    run: Run
    rows: Callable[[], Iterable[EvalRow]]
    """Reads every row from the first: by system, then in dataset order."""
    full_rows: Callable[[str], Iterable[FullRow]]
    """Reads the rows of one system with what it returned, and the original where it is known."""
    compare: "Callable[[], Comparison | None]" = lambda: None
    """Compares its systems with each other, or with those of other runs."""


class Reporter(Protocol):
    """Writes a report in one format, piece by piece; text is UTF-8."""

    def __call__(self, report: Report, /) -> Iterable[str | bytes]: ...


def report_of(result: EvalResult, examples: Sequence[Original] = ()) -> Report:
    """Present the result of `evaluate()` as a run that has succeeded.

    With the `examples` that were evaluated, a page shows each one next to the answers.
    """
    originals = dict(enumerate(examples))

    def of_system(system: str) -> Iterable[FullRow]:
        return ((row, originals.get(row.ordinal)) for row in result.rows if row.system == system)

    def compared() -> "Comparison | None":
        return compared_sides(
            {name: [row for row, _ in of_system(name)] for name in run.systems}, [run]
        )

    run = _run_of(result)
    return Report(run, lambda: result.rows, of_system, compared)


def compared_sides(
    sides: Mapping[str, Iterable[EvalRow]],
    runs: Sequence[Run],
    *,
    must: bool = False,
    **settings: Any,
) -> "Comparison | None":
    """Compare systems as the first of their runs does.

    Where nothing compares, return None, or raise an error if it `must` be compared.
    """
    if len(sides) < 2:
        return None
    try:
        return compared_by_judges(sides, runs, **settings)
    except InvalidInput:
        if must:
            raise
        return None


def compared_by_judges(
    sides: Mapping[str, Iterable[EvalRow]], runs: Sequence[Run], **settings: Any
) -> "Comparison":
    """Compare systems, and call none better of which the first run's judges think differently.

    What a judge said that did not pass its controls is marked, whichever run it is of.
    """
    from cbench_server.comparison import compare, score_infos
    from cbench_server.comparison.raters import without_disputed

    run = runs[0]
    judges = list(run.config.get("judges") or [])
    settings = {
        "threshold": run.spec.threshold,
        "seed": run.spec.seed,
        "scores": score_infos(run.config.get("datasets", ())),
        "suites": suites_in_all([run]),
        **settings,
    }
    if judges:
        # With several judges the rows are read more than once.
        sides = {name: list(rows) for name, rows in sides.items()}
    found = compare(sides, **settings)
    scores = {pair.score for pair in found.pairs}
    if judges:
        found = without_disputed(found, sides, judges, settings)
    notes = [note for each in runs for note in figure_notes(each, scores)]
    if not settings.get("score_field"):
        notes += [note for each in runs for note in _by_rows(each, scores)]
    return replace(
        found,
        pairs=tuple(_with_mark(pair, runs) for pair in found.pairs),
        groups=tuple(replace(each, pair=_with_mark(each.pair, runs)) for each in found.groups),
        notes=tuple(dict.fromkeys((*found.notes, *notes))),
    )


def _by_rows(run: Run, scores: Collection[str]) -> Iterator[str]:
    """Say what pairs stand on where a run's figure is one that no single row has."""
    if own_figure(run) and scores:
        parts = ", ".join(run.config["figure"]["scores"])
        yield (
            f"Pairs are compared by {' and '.join(sorted(scores))}, row by row; the figure of "
            f"{run.spec.datasets[0].label} is {own_figure(run)}, of the means of {parts}."
        )


def _with_mark(pair: "PairedDifference", runs: Sequence[Run]) -> "PairedDifference":
    from cbench_server.comparison.sentences import sentence

    score = with_mark(pair.score, *runs)
    if score == pair.score:
        return pair
    marked = replace(pair, score=score)
    return replace(marked, sentence=sentence(marked))


def _run_of(result: EvalResult) -> Run:
    systems = tuple(dict.fromkeys([*result.summary, *(row.system for row in result.rows)]))
    failed = {row.system: 0 for row in result.rows}
    completed = dict(failed)
    for row in result.rows:
        completed[row.system] += 1
        failed[row.system] += row.failure is not None
    started = float(result.config.get("started_at", 0.0))
    labels = sorted({row.dataset for row in result.rows} - {""})
    return Run(
        run_id="",
        spec=RunSpec(systems=(), datasets=tuple(map(DatasetRef, labels))),
        state=RunState.SUCCEEDED,
        create_time=started,
        end_time=started + sum(result.timing.values()),
        total_rows=len(result.rows),
        progress={name: SystemProgress(completed[name], failed[name]) for name in completed},
        summary=result.summary,
        timing=result.timing,
        config=result.config,
        systems=systems,
        notes=tuple(RunNote(**note) for note in result.config.get("notes", ())),
    )
