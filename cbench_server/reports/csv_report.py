"""Rows as CSV: one line per row, one column per score."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cbench_server.reports.report import FullRow
from cbench_server.reports.row_columns import WITHOUT_COLUMN, Found, field_of, value_of
from cbench_server.reports.row_texts import TEXTS, texts_of
from cbench_server.results import EvalRow
from cbench_server.texts.numbers import is_missing

_FIELDS = (
    "system",
    "dataset",
    "example_id",
    "index",
    "repeat",
    "primary_score",
    "input_tokens",
    "output_tokens",
    "context_tokens_in",
    "context_tokens_out",
    "latency",
    "attempts",
    "ingest_time",
)
LEFT_OUT = (
    *WITHOUT_COLUMN,
    "queue_time",
    "scoring_time",
    "reader_time",
    "reused",
    "group",
)
"""Fields of a row without a column; each score and each field to group by has its own."""


def to_csv(
    read: Callable[[], Iterable[EvalRow]], full: Callable[[], Iterable[FullRow]] | None = None
) -> Iterator[str]:
    """Render rows line by line, failed ones with an empty score.

    The rows are read twice, the first time for the names of scores and groups, so
    that they need not fit in memory. Text that a spreadsheet would run as a
    formula begins with an apostrophe. `full` reads them with their texts, which then have columns.
    """
    found = Found()
    for row in read():
        found.see(row)
    scores, groups, money = found.scores, found.groups, found.money
    titles = [*scores, *(f"group:{name}" for name in groups), *money, *found.replica]
    names = TEXTS if full else ()
    yield _line([*_FIELDS, *map(_cell, titles), "marks", "failure", "failure_message", *names])
    for row, original in full() if full else ((row, None) for row in read()):
        failure = row.failure
        texts = texts_of(row, original) if full else {}
        yield _line(
            [
                *(_cell(field_of(row, name)) for name in _FIELDS),
                *(_cell(row.scores.get(name)) for name in scores),
                *(_cell(row.groups.get(name)) for name in groups),
                *(_cell(value_of(row, name)) for name in money),
                *(_cell(row.replica) for _ in found.replica),
                " ".join(row.marks),
                _cell(failure.reason if failure else None),
                _cell(failure.message if failure else None),
                *(_cell(texts[name]) for name in names),
            ]
        )


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and is_missing(value)):
        return ""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value


def _line(cells: list[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()
