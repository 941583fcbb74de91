"""Lines of a file as bytes, and the handling of a line that cannot be used."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from cbench_server.errors import BadDataset

# A message on the wire carries at most 128 MB, so no longer line can become an
# example; the bound keeps a file without line breaks from filling memory.
MAX_LINE_BYTES = 128 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class BadLines:
    """Raises for a bad line, or reports it and lets the reader go on."""

    path: Path
    skip: bool
    on_bad_line: Callable[[BadDataset], None] | None

    def met(self, number: int, reason: str) -> None:
        """Handle a bad line; `number` counts from 1."""
        error = BadDataset(f"{self.path}, line {number}: {reason}")
        if not self.skip:
            raise error
        if self.on_bad_line is not None:
            self.on_bad_line(error)


def open_file(path: Path) -> BinaryIO:
    """Open a file, unpacking it if its name ends in .gz."""
    is_gzipped = path.name.lower().endswith(".gz")
    return cast(BinaryIO, gzip.open(path, "rb")) if is_gzipped else path.open("rb")


def numbered_lines(
    stream: BinaryIO, bad_lines: BadLines, max_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes]]:
    """Iterate (number from 1, line with its end), without a byte order mark at the start."""
    number = 0
    while line := stream.readline(max_bytes + 1):
        number += 1
        if len(line) > max_bytes and not line.endswith(b"\n"):
            bad_lines.met(number, f"longer than {max_bytes:,} bytes")
            while line and not line.endswith(b"\n"):
                line = stream.readline(max_bytes)
            continue
        yield number, line.removeprefix(_BOM) if number == 1 else line
