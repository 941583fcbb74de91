"""Rows of a page: a light index of all it shows, and the texts of each, cut to a length."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any

from cbench_server.reports.chunks import Chunks, encoded, packed
from cbench_server.reports.judges import MARK, marked_scores
from cbench_server.reports.report import Original, Report
from cbench_server.reports.row_columns import cost_line
from cbench_server.results import EvalRow, Failure, strict_json
from cbench_server.texts import numbers

ROWS_SHOWN = 20_000
"""Rows a page holds: of each system the first ones, the same examples for all."""
LONGEST_TEXT = 20_000
"""Characters a page keeps of one text, where there are few rows."""
SHORTEST_TEXT = 2_000
"""Characters it keeps of one text, where there are many rows."""
_ALL_TEXTS = 80_000_000

Text = tuple[str, int, int]
"""A text for the page: its characters, 1 if they are JSON, and how many were cut off."""

_COLUMNS = (
    "system",
    "example",
    "repeat",
    "score",
    "name",
    "tokens_in",
    "tokens_out",
    "latency",
    "failure",
    "said",
)
_SNIPPET = 120
_QUESTIONS = ("question", "prompt", "instruction", "query", "premise", "title", "context")


class PageRows:
    """Packs rows as they are read; `cut_texts` and `shown` are known at the end."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._systems = report.run.systems
        self._marked = marked_scores(report.run)
        self._share = max(1, ROWS_SHOWN // max(1, len(self._systems)))
        expected = sum(
            min(self._share, progress.completed) for progress in report.run.progress.values()
        )
        self.text_limit = text_limit(expected)
        self.cut_texts = 0
        self.shown = 0
        self._bodies, self._originals = Chunks("row"), Chunks("example")
        self._examples: dict[tuple[str, int], int] = {}
        self._index: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self._example_index: dict[str, list[Any]] = {"id": [], "dataset": [], "asked": []}

    def elements(self) -> Iterator[str]:
        """Read the rows and write them as elements of the page."""
        for number, system in enumerate(self._systems):
            for row, original in islice(self._report.full_rows(system), self._share):
                yield from self._add(number, row, original)
        yield from self._bodies.flush()
        yield from self._originals.flush()
        index = {
            "rows": self._index,
            "examples": self._example_index,
            "row_starts": self._bodies.starts,
            "example_starts": self._originals.starts,
        }
        yield packed("index", encoded(index))

    def _add(self, system: int, row: EvalRow, original: Original | None) -> Iterator[str]:
        key = (row.dataset, row.ordinal)
        if key not in self._examples:
            self._examples[key] = len(self._examples)
            self._example_index["id"].append(str(row.example_id))
            self._example_index["dataset"].append(row.dataset)
            self._example_index["asked"].append(_asked(original or row.processed or {}))
            yield from self._originals.add(self._texts(original or {}))
        self._list(system, self._examples[key], row)
        yield from self._bodies.add(self._body(row, original))
        self.shown += 1

    def _list(self, system: int, example: int, row: EvalRow) -> None:
        values = (
            system,
            example,
            row.repeat,
            row.score,
            self._named(row.score_name),
            row.context_tokens_in,
            row.context_tokens_out,
            row.call_seconds,
            row.failure.reason if row.failure else None,
            _said(row),
        )
        for name, value in zip(_COLUMNS, values, strict=True):
            self._index[name].append(value)

    def _body(self, row: EvalRow, original: Original | None) -> dict[str, Any]:
        processed, before = row.processed or {}, original or {}
        kept = [name for name in processed if name in before and processed[name] == before[name]]
        return {
            "fields": self._texts({n: v for n, v in processed.items() if n not in kept}),
            "kept": sorted(kept),
            "scores": {self._named(name): value for name, value in row.scores.items()},
            "details": {name: self._texts(said) for name, said in row.details.items()},
            "evaluator_failures": {
                name: self._failure(failure) for name, failure in row.evaluator_failures.items()
            },
            "failure": self._failure(row.failure) if row.failure else None,
            "facts": self._texts(_facts(row)),
            "metadata": self._texts(row.metadata),
            "times": [row.queue_time, row.latency, row.reader_time, row.scoring_time],
        }

    def _named(self, score: str) -> str:
        return score + MARK if score in self._marked else score

    def _texts(self, values: Mapping[str, Any]) -> dict[str, Text]:
        texts = {name: page_text(value, self.text_limit) for name, value in values.items()}
        self.cut_texts += sum(1 for _, _, cut in texts.values() if cut)
        return texts

    def _failure(self, failure: Failure) -> dict[str, Text]:
        plain = {
            name: value for name, value in asdict(failure).items() if value or name == "message"
        }
        return self._texts(plain)


def _facts(row: EvalRow) -> dict[str, Any]:
    """Collect the facts that have a value."""
    facts: dict[str, Any] = {
        "tokens of all texts": f"{row.input_tokens:,} → {row.output_tokens:,}",
        "attempts": str(row.attempts),
    }
    if row.context_tokens_in is not None and row.context_tokens_out is not None:
        facts["context tokens"] = f"{row.context_tokens_in:,} → {row.context_tokens_out:,}"
    if cost := cost_line(row):
        facts["cost"] = cost
    if row.reused:
        facts["reused"] = "taken from the store instead of the system"
    if row.ingest_time:
        facts["ingesting"] = numbers.seconds(row.ingest_time)
    optional = {
        "replica": row.replica,
        "group": row.group,
        "usage": row.usage,
        "reader usage": row.reader_usage,
    }
    return facts | {name: value for name, value in optional.items() if value}


def _asked(example: Mapping[str, Any]) -> str:
    found = (snippet(example.get(name), _SNIPPET) for name in _QUESTIONS)
    return next(filter(None, found), "")


def _said(row: EvalRow) -> str:
    if row.failure:
        return snippet(row.failure.message, _SNIPPET)
    return snippet((row.processed or {}).get("response"), _SNIPPET)


def text_limit(rows: int) -> int:
    """Return how many characters of each text a page of so many rows keeps."""
    return max(SHORTEST_TEXT, min(LONGEST_TEXT, _ALL_TEXTS // max(rows, 1)))


def page_text(value: Any, limit: int) -> Text:
    """Give a value as text; what is not text itself becomes JSON."""
    is_json = not isinstance(value, str)
    text = strict_json(value) if is_json else value
    return text[:limit], int(is_json), max(0, len(text) - limit)


def snippet(value: Any, length: int) -> str:
    """Give the beginning of a text on one line."""
    if not isinstance(value, str):
        return ""
    # Splitting a huge text to show a line of it would cost more than the line.
    line = " ".join(value[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"
