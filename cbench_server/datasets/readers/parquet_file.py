"""Parquet, through pyarrow: a few rows at a time, as plain Python values."""

from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Any

from cbench_server.datasets.readers.lines import BadLines, DataFile, open_file
from cbench_server.errors import BadDataset
from cbench_server.lazy_imports import require
from cbench_server.types import Example

# Rows can hold whole books: few at a time keep memory flat.
_ROWS_AT_A_TIME = 32


def iterate_parquet(path: DataFile, bad_lines: BadLines) -> Iterator[Example]:
    """Iterate the rows of a .parquet file; it has no lines to skip."""
    require("pyarrow", f"{path.name} is read with the package")
    # Imported here because it takes a third of a second and most runs never need it.
    import pyarrow
    from pyarrow import parquet

    try:
        with _opened(path) as stream, parquet.ParquetFile(stream) as file:
            for batch in file.iter_batches(batch_size=_ROWS_AT_A_TIME):
                for row in batch.to_pylist():
                    yield {name: plain(value) for name, value in row.items()}
    except pyarrow.ArrowInvalid as error:
        raise BadDataset(f"{path} is not a readable parquet file: {error}") from error


def _opened(path: DataFile) -> IO[bytes]:
    """Open a file for reading at any place, which gzip does not allow."""
    stream = open_file(path)
    if not path.name.lower().endswith(".gz"):
        return stream
    unpacked = TemporaryFile()  # noqa: SIM115
    try:
        with stream:
            copyfileobj(stream, unpacked)
    except BaseException:
        unpacked.close()
        raise
    unpacked.seek(0)
    return unpacked


def plain(value: Any) -> Any:
    """Turn dates, times and decimals into text, which JSON and the wire can carry."""
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case date() | time():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case _:
            return value
