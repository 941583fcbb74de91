"""Uploads of dataset files, which the daemon names by their digest."""

import re
import sys
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from cbench_client import BenchClient
from cbench_server.cli.exits import UsageError
from cbench_server.datasets.readers.files import iterate_file, name_of_file
from cbench_server.errors import BadDataset
from cbench_server.texts.grid import printable
from cbench_server.types import Example

_BAD_LINES_SHOWN = 5
_NAME = re.compile(r"[\w.-]+")


def upload(
    client: BenchClient, file: str, max_examples: int | None, *, skip_bad_lines: bool
) -> dict[str, Any]:
    """Send the examples of a file, given as FILE or NAME=FILE; return the dataset of the spec."""
    name, path = named_file(file)
    bad = _BadLines()
    examples = iterate_file(path, skip_bad_lines=skip_bad_lines, on_bad_line=bad.met)
    first = list(islice(examples, 1))
    if not first:
        bad.sum_up(path)
        raise UsageError(f"{path} contains no examples.")
    digest, _ = client.upload(_first(chain(first, examples), max_examples))
    bad.sum_up(path)
    return {"name": name, "upload": digest, "max_examples": max_examples}


def named_file(text: str) -> tuple[str, Path]:
    """Read FILE, or NAME=FILE where a file is to be known by another name than its own."""
    name, separator, path = text.partition("=")
    if separator and path and _NAME.fullmatch(name) and not Path(text).exists():
        return name, Path(path)
    return name_of_file(Path(text)), Path(text)


def upload_judge_files(
    client: BenchClient, labels: str | None, errata: str | None
) -> dict[str, str]:
    """Send the files of --labels and --errata, and return what a spec says of them."""
    given = {"labels_upload": labels, "errata_upload": errata}
    return {
        name: str(upload(client, file, None, skip_bad_lines=False)["upload"])
        for name, file in given.items()
        if file
    }


def _first(examples: Iterator[Example], limit: int | None) -> Iterator[Example]:
    return examples if limit is None else islice(examples, limit)


class _BadLines:
    """Reports the lines that were left out: the first few in full, then how many."""

    def __init__(self) -> None:
        self._count = 0

    def met(self, error: BadDataset) -> None:
        self._count += 1
        if self._count <= _BAD_LINES_SHOWN:
            print(printable(f"left out: {error}"), file=sys.stderr)

    def sum_up(self, path: Path) -> None:
        if self._count:
            lines = "line" if self._count == 1 else "lines"
            print(printable(f"left out {self._count:,} {lines} of {path}"), file=sys.stderr)
