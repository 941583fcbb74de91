"""Lines of a file as bytes, and the handling of a line that cannot be used."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, cast

from cbench_server.errors import BadDataset
from cbench_server.limits import MAX_LINE_BYTES

_BOM = b"\xef\xbb\xbf"


class DataFile(Protocol):
    """A file of examples, on this machine or elsewhere; its text names it in messages."""

    @property
    def name(self) -> str:
        """The last part of its path, whose ending tells its format."""
        ...

    def open(self, mode: str) -> Any:
        """Open it, to be read as bytes."""
        ...


@dataclass(frozen=True, slots=True)
class BadLines:
    """Raises for a bad line, or reports it and lets the reader go on."""

    path: DataFile
    skip: bool
    on_bad_line: Callable[[BadDataset], None] | None

    def met(self, number: int, reason: str) -> None:
        """Handle a bad line; `number` counts from 1."""
        error = BadDataset(f"{self.path}, line {number}: {reason}")
        if not self.skip:
            raise error
        if self.on_bad_line is not None:
            self.on_bad_line(error)


def open_file(path: DataFile) -> BinaryIO:
    """Open a file, unpacking it if its name ends in .gz."""
    stream = cast(BinaryIO, path.open("rb"))
    if not path.name.lower().endswith(".gz"):
        return stream
    return cast(BinaryIO, _Unpacked(stream))


class _Unpacked(gzip.GzipFile):
    """What a gzipped stream holds; closes the stream as well, which GzipFile would leave open."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(fileobj=stream, mode="rb")
        self._stream = stream

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._stream.close()


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
