"""A process that writes until its power is cut: `power_writer.py HOME rows|uploads|read HOW`.

Each line says what is stored. `unsafe` leaves out what makes that true.
"""

import asyncio
import os
import sys
from itertools import count
from pathlib import Path
from typing import Any

from cbench_server.errors import CbenchError
from cbench_server.events import RowScored
from cbench_server.results import EvalRow
from cbench_server.storage.sqlite import SqliteStore
from cbench_server.storage.uploads import UploadStore


async def write_rows(home: Path, is_unsafe: bool) -> None:
    store = SqliteStore.open(home)
    if is_unsafe:
        store.writer._connection.execute("PRAGMA synchronous = OFF")
    for ordinal in count((await store.get_run("r1")).last_seq):
        row = EvalRow("a", ordinal, {}, 1, 1, ordinal=ordinal, processed={"response": "word " * 99})
        print(await store.append("r1", [RowScored(row)]), ordinal, flush=True)


def write_uploads(home: Path, is_unsafe: bool) -> None:
    if is_unsafe:
        os.fsync = lambda _: None
    uploads = UploadStore(home)
    for number in count():
        with uploads.writer() as writer:
            writer.add({"id": number, "text": "word " * 10_000})
            print(writer.finish(), flush=True)


def read_uploads(home: Path, digests: list[str]) -> None:
    for digest in digests:
        try:
            (example,) = UploadStore(home).iterate(digest)
            print("whole" if example["text"] == "word " * 10_000 else "other")
        except CbenchError as error:
            print(type(error).__name__)


def main(home: Path, what: str, *rest: Any) -> None:
    if what == "rows":
        asyncio.run(write_rows(home, rest[0] == "unsafe"))
    elif what == "uploads":
        write_uploads(home, rest[0] == "unsafe")
    else:
        read_uploads(home, list(rest))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
