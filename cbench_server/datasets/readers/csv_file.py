"""CSV and TSV: a header row, then one example per row; cells stay text."""

import csv
from collections.abc import Iterator
from typing import Any

from cbench_server.datasets.readers.jsonl_file import decode_value
from cbench_server.datasets.readers.lines import (
    BadLines,
    DataFile,
    numbered_lines,
    open_file,
)
from cbench_server.errors import BadDataset
from cbench_server.limits import MAX_LINE_BYTES
from cbench_server.types import Example

# Evaluators read these as lists, which a cell can only hold as JSON.
_LIST_COLUMNS = frozenset({"answers", "choices"})


def iterate_tsv(path: DataFile, bad_lines: BadLines) -> Iterator[Example]:
    """Iterate the rows of a .tsv file as `iterate_csv` does."""
    return iterate_csv(path, bad_lines, delimiter="\t")


def iterate_csv(path: DataFile, bad_lines: BadLines, *, delimiter: str = ",") -> Iterator[Example]:
    """Iterate the rows of a .csv file as dicts of text.

    A row is reported by the line it begins on.
    """
    # The limit is the csv module's, for the whole process; its default of
    # 128 kB is less than a long context.
    csv.field_size_limit(MAX_LINE_BYTES)
    with open_file(path) as stream:
        # Bytes that are not UTF-8 pass as surrogates, so that the row that
        # holds them can be named, and skipped, as a whole.
        lines = (
            line.decode("utf-8", "surrogateescape") for _, line in numbered_lines(stream, bad_lines)
        )
        rows = csv.reader(lines, strict=True, delimiter=delimiter)
        header = _read_header(path, rows)
        while True:
            first_line = rows.line_num + 1
            try:
                row = next(rows)
                if not row:
                    continue
                example = _example(header, row)
            except StopIteration:
                return
            except (csv.Error, ValueError) as error:
                bad_lines.met(first_line, str(error))
            else:
                yield example


def _read_header(path: DataFile, rows: Iterator[list[str]]) -> list[str]:
    try:
        header = next((row for row in rows if row), None)
        if header is None:
            raise BadDataset(f"{path} is empty; it must begin with a header row")
        _check_text(header)
    except (csv.Error, ValueError) as error:
        raise BadDataset(f"{path}, header row: {error}") from error
    if repeated := [name for name in header if header.count(name) > 1]:
        raise BadDataset(f'{path}, header row: the column "{repeated[0]}" occurs twice; rename one')
    return header


def _example(header: list[str], row: list[str]) -> Example:
    if len(row) != len(header):
        raise ValueError(f"the row has {len(row)} cells, the header {len(header)}")
    _check_text(row)
    return {
        name: _list_or_text(cell) if name in _LIST_COLUMNS else cell
        for name, cell in zip(header, row, strict=True)
    }


def _check_text(row: list[str]) -> None:
    for number, cell in enumerate(row, start=1):
        try:
            cell.encode("utf-8")
        except UnicodeEncodeError as error:
            byte = ord(cell[error.start]) & 0xFF
            raise ValueError(f"invalid UTF-8: byte 0x{byte:02x} in cell {number}") from error


def _list_or_text(cell: str) -> Any:
    if not cell.startswith("["):
        return cell
    try:
        return decode_value(cell.encode())
    except ValueError:
        return cell
