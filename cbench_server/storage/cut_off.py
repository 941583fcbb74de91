"""A store whose file was cut off: SQLite opens none that is shorter than it says that it is."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cbench_server.storage.connection import Database
from cbench_server.storage.database import SqliteDatabase, connect
from cbench_server.storage.migrate import check_tables

_MAGIC = b"SQLite format 3"


def lengths(path: Path) -> tuple[int, int]:
    """Return how many bytes there are, and how many there were when the file was whole."""
    with path.open("rb") as file:
        header = file.read(100)
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    pages = int.from_bytes(header[28:32], "big")
    size = path.stat().st_size
    return size, pages * page_size if header.startswith(_MAGIC) else size


@contextmanager
def as_long_as_it_was(path: Path) -> Iterator[Path]:
    """Give the file, or of one that was cut off a copy that ends in empty pages."""
    size, told = lengths(path) if path.exists() else (0, 0)
    if size >= told:
        yield path
        return
    with TemporaryDirectory(prefix="cbench-") as folder:
        copy = Path(folder) / path.name
        for end in ("", "-wal"):
            part = path.with_name(f"{path.name}{end}")
            if part.exists():
                shutil.copyfile(part, copy.with_name(f"{copy.name}{end}"))
        os.truncate(copy, told)
        yield copy


@contextmanager
def readable(database: Database) -> Iterator[Database]:
    """Give a database of which as much can be read as there is, if its schema is ours."""
    if isinstance(database, SqliteDatabase):
        with as_long_as_it_was(database.path) as path:
            with closing(connect(path, read_only=True)) as connection:
                check_tables(connection, database.path)
            yield SqliteDatabase(path)
    else:
        yield database
