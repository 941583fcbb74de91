"""Reports of the cases: a table, JSON, JUnit XML."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cbench_server.conformance.runner import Result
from cbench_server.texts.grid import Grid, printable
from cbench_server.texts.junit_xml import Case, Outcome, document

_COLUMNS = ("passed", "failed", "known", "skipped")


def as_grid(results: Sequence[Result]) -> Grid:
    """Count by the first two parts of the name; a surprise counts as failed.

    A group in which no case applies gets no line.
    """
    groups: dict[str, Counter[str]] = {}
    for result in results:
        group = "/".join(result.case.name.split("/")[:2])
        status = "failed" if result.is_bad else result.status
        groups.setdefault(group, Counter())[status] += 1
    total: Counter[str] = sum(groups.values(), Counter())
    rows = [
        (group, *(str(counts[column] or "") for column in _COLUMNS))
        for group, counts in [*groups.items(), ("all", total)]
        if group == "all" or counts.keys() - {"skipped"}
    ]
    header = ("cases", "passed", "failed", "known to fail", "not applicable")
    return Grid(header, tuple(rows))


def as_lines(results: Sequence[Result]) -> list[str]:
    """Say what was wrong with every case that did not pass, and why cases were left out."""
    lines = [
        f"{'FAILED' if result.is_bad else 'known '}  {result.case.name}: {printable(result.why)}"
        for result in results
        if result.is_bad or result.status == "known"
    ]
    left_out = Counter(result.why for result in results if result.status == "skipped")
    return lines + [f"{count} not applicable: {printable(why)}" for why, count in left_out.items()]


def as_document(results: Sequence[Result], sdk: str, version: str) -> dict[str, Any]:
    """Return what `--output json` prints."""
    return {
        "cbench": version,
        "sdk": sdk,
        "passed": not any(result.is_bad for result in results),
        "counts": dict(Counter(result.status for result in results)),
        "cases": [
            {
                "name": result.case.name,
                "says": result.case.says,
                "status": result.status,
                "why": result.why,
                "seconds": round(result.seconds, 3),
            }
            for result in results
        ],
    }


def as_junit(results: Sequence[Result], sdk: str) -> bytes:
    """Return a JUnit report: known failures are skipped, with the reason."""
    cases = [_case(result) for result in results]
    name = f"cbench conformance of {sdk or 'a process'}"
    seconds = sum(result.seconds for result in results)
    return document(name, cases, seconds=seconds).encode()


def _case(result: Result) -> Case:
    area, _, name = result.case.name.rpartition("/")
    outcome: Outcome = "passed" if result.status == "passed" else "skipped"
    return Case(
        classname=area.replace("/", "."),
        name=name,
        outcome="failure" if result.is_bad else outcome,
        message=printable(result.why),
        seconds=result.seconds,
    )
