"""Formats of a report; the registry registers `REPORTERS`."""

from collections.abc import Iterator

from cbench_server.reports.csv_report import to_csv
from cbench_server.reports.json_report import row_line, to_json
from cbench_server.reports.junit import to_junit
from cbench_server.reports.markdown import to_markdown
from cbench_server.reports.page import to_html
from cbench_server.reports.parquet import to_parquet
from cbench_server.reports.report import Report, Reporter
from cbench_server.spec import Run


def examples_of(run: Run) -> int:
    """Return how many examples each system was given."""
    per_system = [progress.completed for progress in run.progress.values()]
    return max(per_system, default=0) // run.spec.repeats


def markdown(report: Report) -> Iterator[str]:
    """The summary as a Markdown table."""
    run = report.run
    yield to_markdown(run.summary, run.timing, examples_of(run))


def json(report: Report) -> Iterator[str]:
    """The run with its rows as one JSON document."""
    return to_json(report.run, report.rows())


def jsonl(report: Report) -> Iterator[str]:
    """One row per line, as JSON."""
    return (row_line(row) + "\n" for row in report.rows())


def csv(report: Report) -> Iterator[str]:
    """One row per line, for a spreadsheet."""
    return to_csv(report.rows)


def parquet(report: Report) -> Iterator[bytes]:
    """The rows as typed columns, for pandas, polars or DuckDB."""
    return to_parquet(report.rows)


def junit(report: Report) -> Iterator[str]:
    """One test case per row, for a CI system."""
    return to_junit(report.rows, report.run.spec.threshold)


REPORTERS: dict[str, Reporter] = {
    "html": to_html,
    "markdown": markdown,
    "json": json,
    "jsonl": jsonl,
    "csv": csv,
    "parquet": parquet,
    "junit": junit,
}


SUFFIXES = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".xml": "junit",
}
"""The format meant by a file's name."""
