"""Write-ahead log of a store, checked as it lies on the disk.

SQLite reads a log up to the first frame that is not right, and takes what follows for
leftovers. So damage in it loses committed work without a word; this is where it is noticed.
https://www.sqlite.org/fileformat2.html#the_write_ahead_log is the layout.
"""

import struct
from pathlib import Path

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)


def lost_commits(path: Path) -> int:
    """Return how many commits lie at or behind damage in a log, and are lost to a reader.

    A kill leaves none; a power failure can leave one, which was not acknowledged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return 0
    if len(data) < _HEADER.size:
        return 0
    magic, _, page_size, _, *salts, first, second = _HEADER.unpack_from(data)
    order = ">" if magic & 1 else "<"
    total = _checksum(order, data[: _HEADER.size - 8], (0, 0))
    is_sound = magic in _MAGIC and total == (first, second)
    if not is_sound:
        page_size = page_size if 512 <= page_size <= 65536 else 4096
    lost = 0
    for at in range(_HEADER.size, len(data) - _FRAME.size - page_size + 1, _FRAME.size + page_size):
        _, commit, *theirs, one, other = _FRAME.unpack_from(data, at)
        if theirs != salts:
            break  # Left over from before the log was begun anew.
        if is_sound:
            frame = data[at : at + 8] + data[at + _FRAME.size : at + _FRAME.size + page_size]
            total = _checksum(order, frame, total)
            is_sound = total == (one, other)
        if not is_sound and commit:
            lost += 1
    return lost


def _checksum(order: str, data: bytes, total: tuple[int, int]) -> tuple[int, int]:
    one, other = total
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = one + first + other & 0xFFFFFFFF
        other = other + second + one & 0xFFFFFFFF
    return one, other
