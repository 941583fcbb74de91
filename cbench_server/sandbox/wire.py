"""Frames between the processes: four bytes of length, then JSON."""

import json
import os
import struct
from typing import Any

MAX_FRAME = 64 << 20

Message = dict[str, Any]

# The operators that one side may ask the other to apply, by the names of the module `operator`.
CONTAINING = ("getitem", "setitem", "delitem", "contains")
ORDERING = ("lt", "le", "gt", "ge")
_ARITHMETIC = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow")
CALCULATING = (*_ARITHMETIC, "and", "or", "xor", "neg", "invert")


class Broken(Exception):
    """The other side ended, or did not keep to the protocol."""


class Closed(Broken):
    """The other side ended."""


def send(descriptor: int, message: Message) -> None:
    """Write one frame, all of it."""
    body = json.dumps(message, separators=(",", ":")).encode()
    rest = memoryview(struct.pack("<I", len(body)) + body)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def receive(descriptor: int) -> Message:
    """Read one frame; raises Broken for anything else."""
    (length,) = struct.unpack("<I", _read_exactly(descriptor, 4))
    if length > MAX_FRAME:
        raise Broken(f"a frame of {length:,} bytes; the limit is {MAX_FRAME:,}")
    try:
        message = json.loads(_read_exactly(descriptor, length))
    except (ValueError, RecursionError) as error:
        raise Broken("a frame that is not JSON") from error
    if not isinstance(message, dict):
        raise Broken("a frame that is not an object")
    return message


def read_all(descriptor: int, limit: int) -> bytes:
    """Read a file from its start, up to the limit."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    parts: list[bytes] = []
    while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 20))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def _read_exactly(descriptor: int, count: int) -> bytes:
    buffer = bytearray()
    while len(buffer) < count:
        part = os.read(descriptor, min(count - len(buffer), 1 << 20))
        if not part:
            raise Closed("the other side ended")
        buffer += part
    return bytes(buffer)
