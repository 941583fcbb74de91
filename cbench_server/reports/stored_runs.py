"""Stored runs: read from wherever they are kept, reported and compared."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from cbench_server.errors import InvalidInput

if TYPE_CHECKING:
    from cbench_server.comparison import Comparison
    from cbench_server.reports.grouped_rows import GroupedRows, ReadRows
    from cbench_server.reports.report import FullRow, Report
    from cbench_server.results import EvalRow
    from cbench_server.spec import Run

# What identifies the examples of a dataset.
_DATA = ("upload", "split", "revision", "files")


class Source(Protocol):
    """Where the rows of runs are read, page by page."""

    def rows(self, run_id: str, system: str) -> "Iterator[EvalRow]":
        """Read the rows of a system, or of all if it is empty."""
        ...

    def full_rows(self, run_id: str, system: str) -> "Iterator[FullRow]":
        """Read them with what the system returned, and the original where it is known."""
        ...


def shown_run(run: "Run") -> "Run":
    """Return a run with its metrics in the order in which they are shown."""
    from cbench_server.reports.columns import ordered_keys

    summary = {
        system: {key: values[key] for key in ordered_keys({system: values})}
        for system, values in run.summary.items()
    }
    return replace(run, summary=summary)


def check_system(run: "Run", name: str) -> str:
    """Return a system's name if the run has it."""
    if name not in run.systems:
        near = difflib.get_close_matches(name, run.systems, n=1, cutoff=0.5)
        hint = f' Did you mean "{near[0]}"?' if near else f" It has: {', '.join(run.systems)}."
        raise InvalidInput(f'run {run.run_id} has no system "{name}".{hint}')
    return name


def check_ranked(run: "Run", name: str) -> str:
    """Return a system's name if the run has it and it may be compared."""
    if check_system(run, name) in run.unranked:
        what = "an anchor", "the reader"
        if run.role_of(name) == "direct":
            what = "a direct arm", "the model behind the proxies"
        raise InvalidInput(
            f'"{name}" is {what[0]} of run {run.run_id}: it tells of {what[1]}, and is never '
            f"ranked, compared or gated. Choose among: {', '.join(run.ranked)}."
        )
    return name


def report_from(
    source: Source,
    run: "Run",
    *,
    others: "Sequence[Run]" = (),
    group_by: Sequence[str] = (),
) -> "Report":
    """Build the report of a run; its systems are compared with each other and with `others`.

    With `group_by` it has the figures of groups as well.
    """
    from cbench_server.reports.report import Report

    group_by = group_by or run.spec.group_by
    shown, read = grouped(source, run, group_by)
    return Report(
        shown,
        lambda: read(""),
        lambda system: source.full_rows(run.run_id, system),
        lambda: _comparison(source, [run, *others], group_by),
    )


def grouped(source: Source, run: "Run", fields: Sequence[str]) -> "tuple[Run, ReadRows]":
    """Return a run with the figures of its groups, and what reads its rows with their groups."""

    def read(system: str) -> "Iterator[EvalRow]":
        return source.rows(run.run_id, system)

    if all(field in run.spec.group_by for field in fields):
        return run, read
    found = _groups(source, run, fields, read)
    return found.summarized(), found.rows


def rows_reader(source: Source, run: "Run", fields: Sequence[str]) -> "ReadRows":
    """Return what reads the rows of a system with their groups."""

    def read(system: str) -> "Iterator[EvalRow]":
        return source.rows(run.run_id, system)

    return _groups(source, run, fields, read).rows if fields else read


def _groups(source: Source, run: "Run", fields: Sequence[str], read: "ReadRows") -> "GroupedRows":
    from cbench_server.reports.grouped_rows import GroupedRows

    return GroupedRows(run, fields, read, lambda system: source.full_rows(run.run_id, system))


def _comparison(
    source: Source, runs: "Sequence[Run]", group_by: Sequence[str]
) -> "Comparison | None":
    """Compare every system of every run with every other, if there is anything to compare.

    Raises InvalidInput where several runs were named and nothing can be compared.
    """
    from cbench_server.reports.report import compared_sides
    from cbench_server.reports.suites import suites_in_all
    from cbench_server.reports.sweeps import listed

    sides: dict[str, Iterable[EvalRow]] = {}
    for run in runs:
        read = rows_reader(source, run, group_by)
        for system in listed(run):
            name = system if system not in sides else f"{system} ({run.run_id})"
            sides[name] = read(system)
    settings: dict[str, Any] = {"suites": suites_in_all(runs), "group_by": group_by}
    found = compared_sides(sides, runs, must=len(runs) > 1, **settings)
    notes = [note for other in runs[1:] for note in run_differences(runs[0], other)]
    return replace(found, notes=(*dict.fromkeys(notes), *found.notes)) if found else None


def run_differences(a: "Run", b: "Run") -> Iterator[str]:
    """Yield a note for everything but the systems that may explain a difference."""
    ours, theirs = _datasets(a), _datasets(b)
    for label in [label for label in ours if label in theirs]:
        one, other = ours[label], theirs[label]
        if any(one.get(name) != other.get(name) for name in _DATA):
            # An upload holds only the examples that -n kept, so its digest differs.
            is_cut = one.get("upload") and one.get("max_examples") != other.get("max_examples")
            what = "different data, or parts of the same" if is_cut else "different data"
            yield f"{label} was read from {what}: the same id may mean different examples."
        if one.get("evaluators") != other.get("evaluators"):
            yield f"{label} was scored by different evaluators, versions or settings."
    if _corrections(a) != _corrections(b):
        yield "The runs were scored with different references; at least one has corrected ones."
    if a.spec.reader != b.spec.reader:
        yield "The runs had different readers."
    if a.config.get("tokenizer") != b.config.get("tokenizer"):
        yield "The runs counted tokens differently."


def _corrections(run: "Run") -> list[str]:
    """Return the files of references that a run, or the runs it was rescored from, was given."""
    found: list[str] = []
    rescoring: dict[str, Any] = run.config.get("rescoring", {})
    while rescoring:
        found.append(rescoring["references_upload"])
        rescoring = rescoring.get("earlier", {})
    return [each for each in found if each]


def _datasets(run: "Run") -> dict[str, dict[str, Any]]:
    return {str(each.get("label")): each for each in run.config.get("datasets", [])}
