"""Examples that clients sent, each set in a file named by the digest of its content.

A file is a mark, then a frame for each example (length, checksum, packed
MessagePack), then a frame of length zero and the number of examples.
"""

import hashlib
import os
import re
import struct
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from cbench_server.errors import NotFound, StoreCorrupt, StoreError
from cbench_server.runs.digests import canonical_digest, encode_fields
from cbench_server.storage import codec
from cbench_server.storage.database import explained
from cbench_server.types import Example

_MARK = b"cbench-examples-1\n"
_FRAME = struct.Struct("<II")
_COUNT = struct.Struct("<Q")
_MAX_FRAME = 256_000_000
_STALE_SECONDS = 86_400.0
_DIGEST = re.compile("[0-9a-f]{64}")


class UploadStore:
    """The uploads under `<home>/uploads`. All its methods block on the disk."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "uploads"

    def writer(self) -> "UploadWriter":
        """Start a new upload."""
        with explained(self._directory):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_stale()
            return UploadWriter(self._directory)

    def _remove_stale(self) -> None:
        """Remove what processes that were killed have left behind."""
        for part in self._directory.glob("*.part"):
            if time.time() - part.stat().st_mtime > _STALE_SECONDS:
                part.unlink(missing_ok=True)

    def iterate(self, digest: str) -> Iterator[Example]:
        """Yield the examples of an upload, or raise `NotFound`."""
        path = self._find(digest)
        with path.open("rb") as file:
            if file.read(len(_MARK)) != _MARK:
                raise _damaged(path, "it does not start as one")
            count = 0
            while frame := _read_frame(file, path):
                yield codec.decode_fields(codec.unpack(frame))
                count += 1
            if _count_at_end(file, path) != count:
                raise _damaged(path, f"{count} examples are there, which is not all")

    def count(self, digest: str) -> int:
        """Return how many examples an upload has, or raise `NotFound`."""
        path = self._find(digest)
        with path.open("rb") as file:
            file.seek(-_COUNT.size, os.SEEK_END)
            return _count_at_end(file, path)

    def _find(self, digest: str) -> Path:
        path = self._directory / f"{digest}.examples"
        if not _DIGEST.fullmatch(digest) or not path.is_file():
            raise NotFound(f'no upload "{digest[:80]}". Upload the examples again.')
        return path


class UploadWriter:
    """One upload on its way. Leaving the context without `finish` discards it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        descriptor, name = tempfile.mkstemp(".part", dir=directory)
        self._path = Path(name)
        self._file = os.fdopen(descriptor, "wb")
        self._digest = hashlib.sha256()
        self.count = 0
        self._file.write(_MARK)

    def __enter__(self) -> "UploadWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with explained(self._path):
            try:
                self._file.close()
            finally:
                self._path.unlink(missing_ok=True)

    def add(self, example: Example) -> None:
        """Write one example, or raise `Unencodable` naming its field."""
        self._digest.update(bytes.fromhex(canonical_digest(example)))
        packed = codec.pack(encode_fields(example))
        with self._writing():
            self._file.write(_FRAME.pack(len(packed), zlib.crc32(packed)))
            self._file.write(packed)
        self.count += 1

    def finish(self) -> str:
        """Put the upload in its place and return its digest; it is on disk then."""
        digest = self._digest.hexdigest()
        with self._writing():
            self._file.write(_FRAME.pack(0, 0) + _COUNT.pack(self.count))
            self._file.flush()
            os.fsync(self._file.fileno())
            self._path.rename(self._directory / f"{digest}.examples")
            directory = os.open(self._directory, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        return digest

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"the upload could not be written to {self._directory} ({error}). Free some "
                "space or check its permissions, then upload again."
            ) from error


def _read_frame(file: BinaryIO, path: Path) -> bytes:
    """Return the next example's bytes, empty at the end."""
    header = file.read(_FRAME.size)
    if len(header) < _FRAME.size:
        raise _damaged(path, "it ends early")
    length, total = _FRAME.unpack(header)
    if length > _MAX_FRAME:
        raise _damaged(path, "an example seems too long")
    frame = file.read(length)
    if len(frame) < length or zlib.crc32(frame) != total:
        raise _damaged(path, "a checksum differs")
    return frame


def _count_at_end(file: BinaryIO, path: Path) -> int:
    data = file.read(_COUNT.size)
    if len(data) < _COUNT.size or file.read(1):
        raise _damaged(path, "it ends early")
    return int(_COUNT.unpack(data)[0])


def _damaged(path: Path, what: str) -> StoreCorrupt:
    return StoreCorrupt(f"the upload {path} is damaged ({what}). Upload the examples again.")
