"""Rows as a folder of Parquet files, one for each system or dataset, as Hive names them.

`system=NAME/rows.parquet`: DuckDB, polars, Spark and pyarrow read the folder as one table and
only the files that a query asks for.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cbench_server.errors import InvalidInput
from cbench_server.reports.parquet import COMPRESSION, Rows
from cbench_server.reports.report import FullRow
from cbench_server.results import EvalRow

_FILE = "rows.parquet"
# What Hive calls a value that is missing or empty.
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
# Each has a file open.
_MOST_PARTS = 500


def write_parquet_folder(
    folder: Path,
    partition_by: Sequence[str],
    read: Callable[[], Iterable[EvalRow]],
    full: Callable[[], Iterable[FullRow]] | None = None,
) -> int:
    """Write rows into a new folder, divided by columns; return the bytes written.

    The folder is there when all is written, or not at all. A column that divides is in the
    names of the folders, and not in the files.
    """
    if folder.exists():
        raise InvalidInput(f"{folder} exists already; name a new folder, or remove it.")
    rows = Rows(read, full, without=partition_by)
    made = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        made.mkdir()
        _write(made, partition_by, rows)
        made.rename(folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return sum(path.stat().st_size for path in folder.rglob(_FILE))


def _write(folder: Path, partition_by: Sequence[str], rows: Rows) -> None:
    import pyarrow
    import pyarrow.parquet

    writers: dict[Path, Any] = {}
    waiting: dict[Path, list[dict[str, Any]]] = {}
    with ExitStack() as stack:

        def open_file(path: Path) -> Any:
            path.parent.mkdir(parents=True, exist_ok=True)
            writer = pyarrow.parquet.ParquetWriter(path, rows.schema, compression=COMPRESSION)
            return stack.enter_context(writer)

        def flush() -> None:
            for path, records in waiting.items():
                table = pyarrow.Table.from_pylist(records, schema=rows.schema)
                writers[path].write_table(table)
            waiting.clear()

        # The rows that wait are counted over all parts: many take no more memory than one.
        for number, record in enumerate(rows.records(), 1):
            path = _path(folder, partition_by, record)
            if path not in writers:
                if len(writers) == _MOST_PARTS:
                    columns = " and ".join(partition_by)
                    raise InvalidInput(f"{columns} divide the rows into over {_MOST_PARTS} parts.")
                writers[path] = open_file(path)
            waiting.setdefault(path, []).append(record)
            if number % rows.at_once == 0:
                flush()
        flush()
        if not writers:
            open_file(folder / _FILE)


def _path(folder: Path, partition_by: Sequence[str], record: dict[str, Any]) -> Path:
    for column in partition_by:
        value = str(record[column])
        folder /= f"{column}={quote(value, safe=' ') if value else _NOTHING}"
    return folder / _FILE
