"""Write-ahead log of a store, checked as it lies on the disk.

SQLite reads a log up to the first frame that is not right, and takes what follows for
leftovers. So damage in it loses committed work without a word; this is where it is noticed.
Nor does it ask whether the disk has what it reads: a commit that was cut off only memory may have.
https://www.sqlite.org/fileformat2.html#the_write_ahead_log is the layout, of the index
https://www.sqlite.org/walformat.html#the_wal_index_file_format.
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)
# The index says this twice: how many frames there are after so many bytes, and the log's salts.
_INDEX = struct.Struct("=16xI12x8s8x")

UNDER_WAY, OVER = b"1", b"0"


def lost_commits(path: Path) -> int:
    """Return how many commits lie at or behind damage in a log, and are lost to a reader.

    A kill leaves none; a power failure can leave one, which was not acknowledged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return 0
    return sum(not is_sound for _, is_sound in _commits(data))


def mark_of(store: Path) -> Path:
    """Return the file that says whether a commit to a store is under way, in its one byte.

    The sync of one may succeed though the disk fails in it, of which ext4 tells from the next
    write on. So that is another: where the mark of the end cannot be written, nobody knows.
    """
    return store.with_name("commit.mark")


def is_durable(path: Path) -> bool:
    """Have the disk take what a log holds; tell whether it has all that a new reader would find.

    Where it takes nothing any more, the log's index tells: a commit is counted there after its
    sync, and marked as over after that. Asked before the store is used, since a process that
    closes the index loses its locks.
    """
    try:
        log = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        os.fsync(log)
    except OSError:
        store = path.with_name(path.name.removesuffix("-wal"))
        index = path.with_name(f"{store.name}-shm")
        return not _is_under_way(store) and _all_counted(path.read_bytes(), index)
    finally:
        os.close(log)
    return True


def _is_under_way(store: Path) -> bool:
    try:
        return mark_of(store).read_bytes() == UNDER_WAY
    except OSError:
        return False


def _all_counted(data: bytes, index: Path) -> bool:
    newest = max((number for number, is_sound in _commits(data) if is_sound), default=0)
    if newest == 0:
        return True
    try:
        one, other = struct.iter_unpack(f"{_INDEX.size}s", index.read_bytes()[: 2 * _INDEX.size])
    except (OSError, ValueError, struct.error):
        return False
    counted, salts = _INDEX.unpack(*one)
    (first,) = struct.unpack_from(">I", data, 16)
    # All of the log had been taken into the store when the index was begun anew.
    is_new = counted == 0 and salts[:4] == struct.pack(">I", first + 1 & 0xFFFFFFFF)
    return one == other and (is_new or (salts == data[16:24] and newest <= counted))


def _commits(data: bytes) -> Iterator[tuple[int, bool]]:
    """Yield the number of the last frame of each commit, and whether a reader gets as far."""
    if len(data) < _HEADER.size:
        return
    magic, _, page_size, _, *salts, first, second = _HEADER.unpack_from(data)
    order = ">" if magic & 1 else "<"
    total = _checksum(order, data[: _HEADER.size - 8], (0, 0))
    is_sound = magic in _MAGIC and total == (first, second)
    if not is_sound:
        page_size = page_size if 512 <= page_size <= 65536 else 4096
    size = _FRAME.size + page_size
    for number, at in enumerate(range(_HEADER.size, len(data) - size + 1, size), 1):
        _, commit, *theirs, one, other = _FRAME.unpack_from(data, at)
        if theirs != salts:
            break  # Left over from before the log was begun anew.
        if is_sound:
            frame = data[at : at + 8] + data[at + _FRAME.size : at + size]
            total = _checksum(order, frame, total)
            is_sound = total == (one, other)
        if commit:
            yield number, is_sound


def _checksum(order: str, data: bytes, total: tuple[int, int]) -> tuple[int, int]:
    one, other = total
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = one + first + other & 0xFFFFFFFF
        other = other + second + one & 0xFFFFFFFF
    return one, other
