"""Local mirror: one folder with files `<org>/<name>/<config>/<split>` and one of a few endings."""

import hashlib
import itertools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from cbench_server.datasets.readers.files import iterate_file
from cbench_server.errors import BadDataset
from cbench_server.types import Example

_log = logging.getLogger(__name__)

SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")

VARIABLE = "CBENCH_DATA_DIR"

_BAD_LINES_NAMED = 5


def named_folder(data_dir: str | Path | None) -> Path | None:
    """Return the mirror's folder: the one given, else CBENCH_DATA_DIR, else None."""
    chosen = str(data_dir or os.environ.get(VARIABLE, ""))
    return Path(chosen).expanduser() if chosen else None


def mirror_folder(data_dir: str | Path | None) -> Path | None:
    """Return the mirror's folder, or raise BadDataset if it does not exist."""
    folder = named_folder(data_dir)
    if folder is not None and not folder.is_dir():
        raise BadDataset(
            f"the data directory {folder} does not exist; check --data-dir and {VARIABLE}"
        )
    return folder


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, as `sha256:HEX`."""
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def find(folder: Path, stems: tuple[str, ...], file: str) -> Path | None:
    """Return the first file of the mirror that holds a part, or None."""
    named = [folder / file] if file else []
    for path in (*named, *(folder / f"{stem}{suffix}" for stem in stems for suffix in SUFFIXES)):
        if path.is_file():
            return path
    return None


def text_names(home: Path) -> list[str]:
    """List the text files of a repository of the mirror."""
    return [path.relative_to(home).as_posix() for path in home.rglob("*.txt")]


def iterate_mirrored(path: Path, *, skip_bad_lines: bool = False) -> Iterator[Example]:
    """Iterate the rows of a file of the mirror; the log names skipped lines."""
    count = itertools.count(1)

    def met(error: BadDataset) -> None:
        if (number := next(count)) <= _BAD_LINES_NAMED:
            _log.warning("left out: %s", error)
        elif number == _BAD_LINES_NAMED + 1:
            _log.warning("left out: further lines of %s", path)

    return iterate_file(path, skip_bad_lines=skip_bad_lines, on_bad_line=met, assume=".json")
