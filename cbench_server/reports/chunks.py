"""Chunks of records packed into the page: gzip in base64, a few hundred kilobytes each.

The page unpacks the one chunk that holds what its reader opens, so that tens of
thousands of rows cost little until they are looked at.
"""

import base64
import gzip
from collections.abc import Iterator
from typing import Any

import msgspec

from cbench_server.results import strict_json

_CHUNK_BYTES = 256 * 1024


class Chunks:
    """Takes records one by one and gives script elements, which no browser executes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.starts: list[int] = []
        """The number of the first record in each chunk."""
        self._records: list[bytes] = []
        self._size = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, record: Any) -> Iterator[str]:
        """Take a record; give a chunk if that fills one."""
        text = encoded(record)
        if not self._records:
            self.starts.append(self._count)
        self._records.append(text)
        self._size += len(text)
        self._count += 1
        if self._size >= _CHUNK_BYTES:
            yield from self.flush()

    def flush(self) -> Iterator[str]:
        """Give what is left."""
        if self._records:
            number = len(self.starts) - 1
            yield packed(f"{self.name}-{number}", b"[%b]" % b",".join(self._records))
            self._records, self._size = [], 0


def encoded(record: Any) -> bytes:
    """Write plain data as JSON; undefined numbers are null."""
    try:
        return msgspec.json.encode(record)
    except UnicodeEncodeError:
        # Half of a surrogate pair, which Python's own objects may hold.
        return strict_json(record, indent=None).encode("utf-8", "replace")


def packed(element_id: str, data: bytes) -> str:
    """Write JSON as a script element of packed data."""
    text = base64.b64encode(gzip.compress(data, compresslevel=6, mtime=0)).decode("ascii")
    return f'<script type="application/gzip" id="{element_id}">{text}</script>\n'
