"""Formats of a report by name and by file suffix; the registry registers `REPORTERS`."""

from collections.abc import Iterator
from itertools import chain

from cbench_server.reports.alpaca_eval import to_alpaca_eval
from cbench_server.reports.csv_report import to_csv
from cbench_server.reports.json_report import full_row_line, row_line, to_json
from cbench_server.reports.junit import to_junit
from cbench_server.reports.longmemeval import to_longmemeval
from cbench_server.reports.markdown import run_to_markdown
from cbench_server.reports.mt_bench import to_mt_bench
from cbench_server.reports.page import to_html
from cbench_server.reports.parquet import to_parquet
from cbench_server.reports.report import FullRow, Report, Reporter
from cbench_server.reports.swebench import to_swebench

REPORTERS: dict[str, Reporter] = {
    "html": to_html,
    "markdown": lambda report: [run_to_markdown(report.run)],
    "json": lambda report: to_json(report.run, report.rows()),
    "jsonl": lambda report: (row_line(row) + "\n" for row in report.rows()),
    "csv": lambda report: to_csv(report.rows),
    "parquet": lambda report: to_parquet(report.rows),
    "junit": lambda report: to_junit(report.rows, report.run.spec.threshold),
    "swebench": to_swebench,
    "alpaca-eval": to_alpaca_eval,
    "mt-bench": to_mt_bench,
    "longmemeval": to_longmemeval,
}

WITH_TEXTS: dict[str, Reporter] = {
    "jsonl": lambda report: (full_row_line(*each) + "\n" for each in full_rows(report)),
    "csv": lambda report: to_csv(report.rows, lambda: full_rows(report)),
    "parquet": lambda report: to_parquet(report.rows, lambda: full_rows(report)),
}
"""Formats that can also have the texts of examples and answers."""


def full_rows(report: Report) -> Iterator[FullRow]:
    """Read all rows with their texts."""
    return chain.from_iterable(map(report.full_rows, report.run.systems))


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
"""The format of a file, by the suffix of its name."""
