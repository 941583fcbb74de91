"""JUnit report of rows: one suite per system and dataset."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from cbench_server.reports.judges import MARK
from cbench_server.results import EvalRow
from cbench_server.texts.junit_xml import DECLARATION, Case, Outcome, suite


def to_junit(read: Callable[[], Iterable[EvalRow]], threshold: float) -> Iterator[str]:
    """Render rows, which are read twice: a suite begins with its counts.

    A row below the threshold is a failure, one that failed an error.
    """
    counts: dict[tuple[str, str], Counter[Outcome]] = {}
    for row in read():
        found = counts.setdefault((row.system, row.dataset), Counter())
        found[outcome(row, threshold)] += 1
    yield DECLARATION
    yield '<testsuites name="cbench">\n'
    for (system, dataset), rows in groupby(read(), lambda row: (row.system, row.dataset)):
        cases = (_case(row, threshold) for row in rows)
        yield from suite(f"{system} on {dataset}", counts[system, dataset], cases)
    yield "</testsuites>\n"


def outcome(row: EvalRow, threshold: float) -> Outcome:
    """Return the outcome of a row in the terms of JUnit."""
    if row.failure is not None:
        return "error"
    if row.score is None:
        return "skipped"
    return "passed" if row.score >= threshold else "failure"


def _case(row: EvalRow, threshold: float) -> Case:
    kind, message = "", "the row has no score"
    if row.failure is not None:
        kind, message = row.failure.reason, row.failure.message
    elif row.score is not None:
        kind = row.score_name
        message = f"{row.score_name} {row.score:.4g} is below {threshold:g}"
    unproven = row.score is not None and "JUDGE_UNQUALIFIED" in row.marks
    return Case(
        classname=f"{row.system}.{row.dataset}",
        name=str(row.example_id) + (f" #{row.repeat + 1}" if row.repeat else ""),
        outcome=outcome(row, threshold),
        message=message,
        kind=kind,
        text=f"{MARK} A judge of this row did not pass its controls." if unproven else "",
        seconds=row.latency,
    )
