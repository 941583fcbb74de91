"""Rows as Parquet: typed columns, one per score, written in groups as they are read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from tempfile import TemporaryFile
from typing import Any

from cbench_server.lazy_imports import require
from cbench_server.reports.report import FullRow
from cbench_server.reports.row_columns import WITHOUT_COLUMN, Found, field_of, value_of
from cbench_server.reports.row_texts import TEXTS, texts_of
from cbench_server.results import EvalRow

_GROUP_ROWS = 20_000
_GROUP_TEXTS = 500
_PIECE_BYTES = 1024 * 1024
COMPRESSION = "zstd"
_TEXTS = ("system", "dataset", "primary_score", "group")
_COUNTS = ("index", "repeat", "input_tokens", "output_tokens", "attempts")
_OPTIONAL_COUNTS = ("context_tokens_in", "context_tokens_out")
_SECONDS = ("latency", "queue_time", "reader_time", "scoring_time", "ingest_time")
LEFT_OUT = WITHOUT_COLUMN
"""Fields of a row without a column; each score and each field to group by has its own."""


class Rows:
    """Rows as records of one schema; a failed row has no scores.

    They are read twice, the first time for the names of scores and groups. The ids
    of examples are written as text, since a column has one type.

    Args:
        full: Reads the rows with their texts, which then have columns.
        without: Columns to leave out.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[EvalRow]],
        full: Callable[[], Iterable[FullRow]] | None = None,
        without: Sequence[str] = (),
    ) -> None:
        require("pyarrow", "the format parquet is written with the package")
        import pyarrow

        self._read, self._full = read, full
        self._found = found = Found()
        for row in read():
            found.see(row)
        columns = [
            *((name, pyarrow.string()) for name in (*_TEXTS, "example_id")),
            *((name, pyarrow.int64()) for name in (*_COUNTS, *_OPTIONAL_COUNTS)),
            *((name, pyarrow.float64()) for name in (*_SECONDS, "score")),
            *((f"score:{name}", pyarrow.float64()) for name in found.scores),
            *((f"group:{name}", pyarrow.string()) for name in found.groups),
            *((name, pyarrow.float64()) for name in found.money),
            *((name, pyarrow.string()) for name in found.replica),
            ("reused", pyarrow.bool_()),
            ("marks", pyarrow.list_(pyarrow.string())),
            ("failure", pyarrow.string()),
            ("failure_message", pyarrow.string()),
            *((name, pyarrow.string()) for name in (TEXTS if full else ())),
        ]
        self.schema = pyarrow.schema([each for each in columns if each[0] not in without])
        # Texts can be whole books: fewer rows at a time keep memory flat.
        self.at_once = _GROUP_TEXTS if full else _GROUP_ROWS

    def records(self) -> Iterator[dict[str, Any]]:
        """Read the rows, each with all columns."""
        if self._full is None:
            yield from (_record(row, self._found) for row in self._read())
            return
        for row, original in self._full():
            yield {**_record(row, self._found), **texts_of(row, original)}


def to_parquet(
    read: Callable[[], Iterable[EvalRow]], full: Callable[[], Iterable[FullRow]] | None = None
) -> Iterator[bytes]:
    """Write rows column by column, in groups as they are read."""
    rows = Rows(read, full)
    import pyarrow
    import pyarrow.parquet

    with TemporaryFile() as file:
        with pyarrow.parquet.ParquetWriter(file, rows.schema, compression=COMPRESSION) as writer:
            records_of = rows.records()
            while records := list(islice(records_of, rows.at_once)):
                writer.write_table(pyarrow.Table.from_pylist(records, schema=rows.schema))
        file.seek(0)
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _record(row: EvalRow, found: Found) -> dict[str, Any]:
    named = (*_TEXTS, *_COUNTS, *_OPTIONAL_COUNTS, *_SECONDS, "score", "reused")
    return {
        **{name: field_of(row, name) for name in named},
        **{f"score:{name}": row.scores.get(name) for name in found.scores},
        **{f"group:{name}": row.groups.get(name) for name in found.groups},
        **{name: value_of(row, name) for name in found.money},
        **dict.fromkeys(found.replica, row.replica),
        "example_id": str(row.example_id),
        "marks": list(row.marks),
        "failure": row.failure.reason if row.failure else None,
        "failure_message": row.failure.message if row.failure else None,
    }
