"""Uploads in the database, where every daemon finds them: the same bytes as a file's, in pieces."""

import io
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from cbench_server.durable import failpoints
from cbench_server.errors import NotFound
from cbench_server.storage import postgresql_statements as sql
from cbench_server.storage.connection import explained_by
from cbench_server.storage.postgres.connection import PostgresConnection
from cbench_server.storage.postgres.database import PostgresDatabase
from cbench_server.storage.uploads import (
    STALE_SECONDS,
    Quotas,
    UploadStore,
    UploadWriter,
    is_digest,
    read_examples,
    read_examples_count,
)
from cbench_server.types import Example

_PART_BYTES = 1 << 20


class PostgresUploads(UploadStore):
    """The uploads of a shared store. See UploadStore for its methods; all block on the database."""

    def __init__(
        self,
        database: PostgresDatabase,
        home: Path,
        max_upload_bytes: int = 0,
        max_total_bytes: int = 0,
    ) -> None:
        """`home` holds what is on its way, until it is whole."""
        super().__init__(home, max_upload_bytes, max_total_bytes)
        self._database = database
        self._connection: PostgresConnection | None = None
        self._lock = threading.Lock()

    def _new_writer(self) -> UploadWriter:
        return _Writer(self._directory, self._quotas, self)

    def _used_bytes(self) -> int:
        return int(self._ask(sql.UPLOADED_BYTES)[0][0])

    def unused(self) -> list[str]:
        """See UploadStore."""
        return [digest for (digest,) in self._ask(sql.UNUSED_UPLOADS, seconds=STALE_SECONDS)]

    def remove(self, digests: Iterable[str]) -> list[str]:
        """See UploadStore."""
        removed = []
        for digest in sorted(digests):
            if self._change(sql.DELETE_UPLOAD, digest=digest, seconds=STALE_SECONDS):
                failpoints.hit("prune.upload")
                removed.append(f"uploads/{digest}.examples")
        return removed

    def all(self) -> list[str]:
        """See UploadStore."""
        return [digest for (digest,) in self._ask(sql.ALL_UPLOADS)]

    def iterate(self, digest: str) -> Iterator[Example]:
        """See UploadStore."""
        self._use(digest)
        return read_examples(self._open(digest), self._name(digest))

    def count(self, digest: str) -> int:
        """See UploadStore."""
        self._use(digest)
        ((last,),) = self._ask(sql.READ_LAST_PART, digest=digest)
        return read_examples_count(io.BytesIO(last), self._name(digest))

    def keep(self, digest: str, file: BinaryIO) -> None:
        """Store a whole upload, unless it is there."""
        with self._lock, explained_by(self._database):
            connection = self._connected()
            connection.begin_writing()
            try:
                upload = {"digest": digest, "size": os.fstat(file.fileno()).st_size}
                if connection.execute(sql.INSERT_UPLOAD, upload).rowcount:
                    number = 0
                    while body := file.read(_PART_BYTES):
                        part = {"digest": digest, "number": number, "body": body}
                        connection.execute(sql.INSERT_UPLOAD_PART, part)
                        number += 1
                else:
                    connection.execute(sql.USE_UPLOAD, {"digest": digest})
                failpoints.hit("upload.written")
                connection.commit()
                failpoints.hit("upload.placed")
            finally:
                connection.rollback()

    def part(self, digest: str, number: int) -> bytes:
        """Return a piece of an upload, empty behind the last."""
        found = self._ask(sql.READ_UPLOAD_PART, digest=digest, number=number)
        return bytes(found[0][0]) if found else b""

    def _use(self, digest: str) -> None:
        if not is_digest(digest) or not self._change(sql.USE_UPLOAD, digest=digest):
            raise NotFound(f'no upload "{digest[:80]}". Upload the examples again.')

    def _open(self, digest: str) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_Parts(self, digest), _PART_BYTES))

    def _name(self, digest: str) -> str:
        return f"{digest} in {self._database.name}"

    def _ask(self, statement: str, **parameters: Any) -> list[Any]:
        with self._lock, explained_by(self._database):
            return self._connected().execute(statement, parameters).fetchall()

    def _change(self, statement: str, **parameters: Any) -> int:
        with self._lock, explained_by(self._database):
            return self._connected().execute(statement, parameters).rowcount

    def _connected(self) -> PostgresConnection:
        if self._connection is None:
            self._connection = self._database.connect()
        return self._connection

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


class _Writer(UploadWriter):
    def __init__(self, directory: Path, quotas: Quotas, uploads: PostgresUploads) -> None:
        super().__init__(directory, quotas)
        self._uploads = uploads

    def _place(self, digest: str) -> None:
        self._file.flush()
        with self._path.open("rb") as file:
            self._uploads.keep(digest, file)


class _Parts(io.RawIOBase):
    """The pieces of an upload, one after another."""

    def __init__(self, uploads: PostgresUploads, digest: str) -> None:
        self._uploads = uploads
        self._digest = digest
        self._number = 0
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = self._uploads.part(self._digest, self._number)
            self._number += 1
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size
