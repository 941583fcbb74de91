"""Examples that clients sent, each set in a file named by the digest of its content.

A file is a mark, then a frame for each example (length, checksum, packed
MessagePack), then a frame of length zero and the number of examples.
"""

import hashlib
import os
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from cbench_server.durable import failpoints
from cbench_server.durable.files import put_in_place
from cbench_server.errors import LimitReached, NotFound, StoreCorrupt, StoreError
from cbench_server.runs.digests import canonical_digest
from cbench_server.storage import codec
from cbench_server.storage.database import explained
from cbench_server.storage.leftovers import new_part
from cbench_server.texts.plain import encode_fields
from cbench_server.types import Example

_MARK = b"cbench-examples-1\n"
_FRAME = struct.Struct("<II")
_COUNT = struct.Struct("<Q")
_MAX_FRAME = 256_000_000
STALE_SECONDS = 86_400.0
_DIGEST = re.compile("[0-9a-f]{64}")

Quotas = Callable[[], Sequence[tuple[int, str]]]
"""Tells how many bytes an upload may have, and what to say of more."""


class UploadStore:
    """The uploads under `<home>/uploads`. All its methods block on the disk."""

    def __init__(self, home: Path, max_upload_bytes: int = 0, max_total_bytes: int = 0) -> None:
        """Limits of 0 are none."""
        self._directory = home / "uploads"
        self._max_upload = max_upload_bytes
        self._max_total = max_total_bytes

    def writer(self) -> "UploadWriter":
        """Start a new upload."""
        with explained(self._directory):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return self._new_writer()

    def _new_writer(self) -> "UploadWriter":
        return UploadWriter(self._directory, self._quotas)

    def _used_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._directory.glob("*.examples"))

    def _quotas(self) -> list[tuple[int, str]]:
        """Return how many bytes an upload may have, and what to say of more."""
        quotas = []
        if self._max_upload:
            quotas.append(
                (
                    self._max_upload,
                    f"the upload is larger than {_mb(self._max_upload)}, the max_upload_mb of this "
                    "daemon. Send fewer examples, or raise max_upload_mb.",
                )
            )
        if self._max_total:
            used = self._used_bytes()
            quotas.append(
                (
                    self._max_total - used,
                    f"uploads take {_mb(used)} already, and with this one more than "
                    f"{_mb(self._max_total)}, the max_uploads_mb of this daemon. Delete runs whose "
                    "uploads are not needed (they go a day after they were last used), or raise "
                    "max_uploads_mb.",
                )
            )
        return quotas

    def unused(self) -> list[str]:
        """Return the digests of uploads that nobody has asked for in a day."""
        return [path.stem for path in self._directory.glob("*.examples") if _is_stale(path)]

    def remove(self, digests: Iterable[str]) -> list[str]:
        """Remove uploads, unless they are asked for again; return the names of the files."""
        removed = []
        for digest in sorted(digests):
            path = self._directory / f"{digest}.examples"
            if path.exists() and _is_stale(path):
                path.unlink(missing_ok=True)
                failpoints.hit("prune.upload")
                removed.append(f"uploads/{path.name}")
        return removed

    def all(self) -> list[str]:
        """Return the digests of all uploads."""
        return sorted(path.stem for path in self._directory.glob("*.examples"))

    def iterate(self, digest: str) -> Iterator[Example]:
        """Yield the examples of an upload, or raise `NotFound`."""
        path = self._find(digest)
        with path.open("rb") as file:
            yield from read_examples(file, path)

    def count(self, digest: str) -> int:
        """Return how many examples an upload has, or raise `NotFound`."""
        path = self._find(digest)
        with path.open("rb") as file:
            return read_examples_count(file, path)

    def close(self) -> None:
        """Let go of what is held, where anything is."""

    def _find(self, digest: str) -> Path:
        path = self._directory / f"{digest}.examples"
        if not is_digest(digest) or not path.is_file():
            raise NotFound(f'no upload "{digest[:80]}". Upload the examples again.')
        with suppress(OSError):
            os.utime(path)
        return path


class UploadWriter:
    """One upload on its way. Leaving the context without `finish` discards it."""

    def __init__(self, directory: Path, quotas: Quotas) -> None:
        self._directory = directory
        self._ask_quotas = quotas
        self._quotas = quotas()
        descriptor, self._path = new_part(directory, suffix=".part")
        self._file = os.fdopen(descriptor, "wb")
        self._digest = hashlib.sha256()
        self.count = 0
        self._size = len(_MARK) + _FRAME.size + _COUNT.size
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

    @property
    def digest(self) -> str:
        """What the upload would be called if it ended here."""
        return self._digest.hexdigest()

    def add(self, example: Example) -> None:
        """Write one example, or raise `Unencodable` naming its field."""
        self._digest.update(bytes.fromhex(canonical_digest(example)))
        packed = codec.pack(encode_fields(example))
        self._size += _FRAME.size + len(packed)
        self._check_quotas()
        with self._writing():
            self._file.write(_FRAME.pack(len(packed), zlib.crc32(packed)))
            self._file.write(packed)
        self.count += 1

    def finish(self) -> str:
        """Put the upload in its place and return its digest; it is on disk then."""
        digest = self.digest
        # Others may have come in meanwhile.
        self._quotas = self._ask_quotas()
        self._check_quotas()
        with self._writing():
            self._file.write(_FRAME.pack(0, 0) + _COUNT.pack(self.count))
            self._place(digest)
        return digest

    def _check_quotas(self) -> None:
        for most, refusal in self._quotas:
            if self._size > most:
                raise LimitReached(refusal)

    def _place(self, digest: str) -> None:
        put_in_place("upload", self._file, self._path, self._directory / f"{digest}.examples")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"the upload could not be written to {self._directory} ({error}). Free some "
                "space or check its permissions, then upload again."
            ) from error


def is_digest(text: str) -> bool:
    """Tell whether an upload may be called so."""
    return _DIGEST.fullmatch(text) is not None


def read_examples(file: BinaryIO, path: Path | str) -> Iterator[Example]:
    """Yield the examples of an opened upload, all of it verified at the end."""
    if file.read(len(_MARK)) != _MARK:
        raise _damaged(path, "it does not start as one")
    count = 0
    while frame := _read_frame(file, path):
        yield codec.decode_fields(codec.unpack(frame))
        count += 1
    if _count_at_end(file, path) != count:
        raise _damaged(path, f"{count} examples are there, which is not all")


def read_examples_count(file: BinaryIO, path: Path | str) -> int:
    """Return how many examples an opened upload has."""
    file.seek(-_COUNT.size, os.SEEK_END)
    return _count_at_end(file, path)


def _read_frame(file: BinaryIO, path: Path | str) -> bytes:
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


def _count_at_end(file: BinaryIO, path: Path | str) -> int:
    data = file.read(_COUNT.size)
    if len(data) < _COUNT.size or file.read(1):
        raise _damaged(path, "it ends early")
    return int(_COUNT.unpack(data)[0])


def _is_stale(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > STALE_SECONDS
    except FileNotFoundError:
        return False


def _mb(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MB"


def _damaged(path: Path | str, what: str) -> StoreCorrupt:
    return StoreCorrupt(f"the upload {path} is damaged ({what}). Upload the examples again.")
