"""Rows as CSV: one line per row, one column per score."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

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
)
LEFT_OUT = (
    "scores",
    "metadata",
    "ordinal",
    "usage",
    "queue_time",
    "scoring_time",
    "reader_time",
    "reader_usage",
    "reused",
    "group",
    "details",
    "evaluator_failures",
    "processed",
    "ingest_time",
    "stored_bytes",
    "carried",
    "context_only",
    "not_applicable",
    "handler_seconds",
    "calls_in_flight",
    "alone",
    "finish_reason",
    "marks",
    "cost_usd",
    "groups",
)
"""Fields of a row without a column; each score has its own."""


def to_csv(read: Callable[[], Iterable[EvalRow]]) -> Iterator[str]:
    """Render rows line by line, failed ones with an empty score.

    The rows are read twice, the first time for the names of the scores, so
    that they need not fit in memory. Text that a spreadsheet would run as a
    formula begins with an apostrophe.
    """
    scores = sorted({name for row in read() for name in row.scores})
    yield _line([*_FIELDS, *map(_cell, scores), "failure", "failure_message"])
    for row in read():
        failure = row.failure
        yield _line(
            [
                *(_cell(getattr(row, name)) for name in _FIELDS),
                *(_cell(row.scores.get(name)) for name in scores),
                _cell(failure.reason if failure else None),
                _cell(failure.message if failure else None),
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
