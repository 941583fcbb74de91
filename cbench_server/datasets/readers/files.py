"""Local files of examples in the formats of `FILE_SUFFIXES`, read one at a time."""

import gzip
import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cbench_server.datasets.readers.csv_file import iterate_csv, iterate_tsv
from cbench_server.datasets.readers.json_file import iterate_json
from cbench_server.datasets.readers.jsonl_file import iterate_jsonl
from cbench_server.datasets.readers.lines import BadLines, DataFile
from cbench_server.datasets.readers.parquet_file import iterate_parquet
from cbench_server.datasets.readers.shards import is_pattern, local_shards, name_of_shards
from cbench_server.errors import BadDataset
from cbench_server.types import Example

_READERS: dict[str, Callable[[DataFile, BadLines], Iterator[Example]]] = {
    ".jsonl": iterate_jsonl,
    ".jsonl.gz": iterate_jsonl,
    ".json": iterate_json,
    ".json.gz": iterate_json,
    ".csv": iterate_csv,
    ".csv.gz": iterate_csv,
    ".tsv": iterate_tsv,
    ".tsv.gz": iterate_tsv,
    ".parquet": iterate_parquet,
    ".parquet.gz": iterate_parquet,
}

FILE_SUFFIXES = tuple(_READERS)


def is_file_name(text: str) -> bool:
    """Whether a dataset's name means a file: by its ending, or by a slash, which no name has but
    those of the hub, `hf:ORG/NAME`.
    """
    if text.startswith("hf:"):
        return False
    return text.lower().endswith(FILE_SUFFIXES) or "/" in text or "\\" in text


def name_of_file(path: Path) -> str:
    """Return a file's name without its ending; that of a folder or pattern without wildcards."""
    if is_pattern(path) or path.is_dir():
        return name_of_shards(path)
    for suffix in sorted(FILE_SUFFIXES, key=len, reverse=True):
        if path.name.lower().endswith(suffix):
            return path.name[: -len(suffix)] or path.name
    return path.name


def iterate_file(
    path: Path,
    *,
    skip_bad_lines: bool = False,
    on_bad_line: Callable[[BadDataset], None] | None = None,
    assume: str = "",
) -> Iterator[Example]:
    """Iterate the examples of a file, holding a few of them in memory at a time.

    A folder, or a pattern, is read file by file in the order of their names. A path that cannot
    be a dataset raises BadDataset here; a bad line raises it when met, naming the file and the
    line. With `skip_bad_lines` a bad line is passed to `on_bad_line` instead and left out.
    `assume` is the ending to take a file by whose own says nothing.
    """
    return iterate_files(
        files_of(path), skip_bad_lines=skip_bad_lines, on_bad_line=on_bad_line, assume=assume
    )


def files_of(path: Path) -> list[Path]:
    """Return the files that a path stands for; a single one is not looked at."""
    if "://" in str(path) or ":/" in str(path)[2:]:
        # A path has lost one of the two slashes.
        address = re.sub(r":/+", "://", str(path), count=1)
        raise BadDataset(
            f"{address} is an address; data elsewhere has a name in the daemon's configuration: "
            '[data.NAME] url = "..."'
        )
    if path.is_dir() or (is_pattern(path) and not path.exists()):
        return local_shards(path, FILE_SUFFIXES)
    return [path]


def iterate_files(
    files: Sequence[DataFile],
    *,
    skip_bad_lines: bool = False,
    on_bad_line: Callable[[BadDataset], None] | None = None,
    assume: str = "",
) -> Iterator[Example]:
    """Iterate the examples of files one after the other."""
    readers = [_reader(path, assume) for path in files]
    return itertools.chain.from_iterable(
        _readable(path, reader(path, BadLines(path, skip_bad_lines, on_bad_line)))
        for path, reader in zip(files, readers, strict=True)
    )


def _reader(path: DataFile, assume: str) -> Callable[[DataFile, BadLines], Iterator[Example]]:
    by_name = (read for suffix, read in _READERS.items() if path.name.lower().endswith(suffix))
    reader = next(by_name, _READERS.get(assume))
    if reader is None:
        raise BadDataset(
            f"the format of {path} is not known; its name must end in {', '.join(FILE_SUFFIXES)}"
        )
    if isinstance(path, Path) and not path.exists():
        raise BadDataset(f"{path} does not exist; check the path")
    return reader


def _readable(path: DataFile, examples: Iterator[Example]) -> Iterator[Example]:
    try:
        yield from examples
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadDataset(f"{path}: damaged gzip data: {error}") from error
    except OSError as error:
        raise BadDataset(f"cannot read {path}: {error.strerror or error}") from error
