"""Room for what a file of a run holds: a few kB of it can be made to unpack to gigabytes.

What is packed is measured piece by piece before any of it is held, and what would be many values
is counted before they are made.
"""

import zlib
from dataclasses import dataclass

from cbench_server.limits import MAX_IMPORTED_BYTES, MAX_IMPORTED_VALUES
from cbench_server.storage import codec

_PIECE = 2**20
# What is shorter cannot hold many values.
_SMALL = 2**20


class NoRoom(Exception):
    """A part of a run is more than is read from a file."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much one part of a run may be, in a file."""

    max_bytes: int = MAX_IMPORTED_BYTES
    max_values: int = MAX_IMPORTED_VALUES

    def check_size(self, size: int) -> None:
        """Raise `NoRoom` for a part of so many bytes."""
        if size > self.max_bytes:
            raise NoRoom(f"one part of it, unpacked, takes more than {self.max_bytes:,} bytes")

    def check(self, data: codec.Buffer) -> None:
        """Raise `NoRoom` for MessagePack that is too long, or of too many values."""
        self.check_size(len(data))
        if len(data) > _SMALL and has_more_values(data, self.max_values):
            raise NoRoom(f"one part of it has more than {self.max_values:,} values")

    def unpack(self, body: bytes) -> codec.Buffer:
        """Undo `codec.pack`; raise `NoRoom`, or ValueError for what is damaged."""
        if codec.is_compressed(body):
            self._measure(body)
        data = codec.unpack(body)
        self.check(data)
        return data

    def _measure(self, body: bytes) -> None:
        unpacker = zlib.decompressobj()
        packed: codec.Buffer = memoryview(body)[1:]
        size = 0
        try:
            while packed and not unpacker.eof:
                size += len(unpacker.decompress(packed, _PIECE))
                self.check_size(size)
                packed = unpacker.unconsumed_tail
        except zlib.error as error:
            raise ValueError(str(error)) from error


def has_more_values(data: codec.Buffer, most: int) -> bool:
    """Tell whether MessagePack announces more values than that, of all depths; makes none."""
    place, left, announced = 0, 1, 1
    while left and place < len(data):
        first = data[place]
        left -= 1
        values, width, place = 0, _WIDTHS[first], place + 1
        if first in _CONTAINERS:
            values = int.from_bytes(data[place : place + width], "big") << _CONTAINERS[first]
            place += width
        elif first < 0x80 or first >= 0xE0:
            pass
        elif first < 0xA0:
            values = (first & 15) << (first < 0x90)
        elif first < 0xC0:
            place += first & 31
        elif first in _TEXTS:
            length = int.from_bytes(data[place : place + width], "big")
            place += width + length + (first in _EXTENSIONS)
        else:
            place += width
        left += values
        announced += values
        if announced > most:
            return True
    return False


# Of first bytes: how many bytes follow that are a number, or the length of what follows.
_OF_C0_TO_DF = "0 0 0 0 1 2 4 1 2 4 4 8 1 2 4 8 1 2 4 8 2 3 5 9 17 1 2 4 2 4 2 4"
_WIDTHS = [*[0] * 0xC0, *map(int, _OF_C0_TO_DF.split()), *[0] * 0x20]
_CONTAINERS = {0xDC: 0, 0xDD: 0, 0xDE: 1, 0xDF: 1}
_EXTENSIONS = (0xC7, 0xC8, 0xC9)
_TEXTS = (0xC4, 0xC5, 0xC6, *_EXTENSIONS, 0xD9, 0xDA, 0xDB)
