"""Encoded messages taken apart by hand, where the parser gives up on the whole."""

from collections.abc import Iterator


def pieces(data: bytes, field: int) -> Iterator[bytes]:
    """Cut the values of one length-delimited field out of an encoded message.

    Raises ValueError where the bytes are no message at all.
    """
    position = 0
    while position < len(data):
        tag, position = varint(data, position)
        kind = tag & 7
        if kind == 0:
            _, position = varint(data, position)
        elif kind in (1, 5):
            position += 8 if kind == 1 else 4
        elif kind == 2:
            length, position = varint(data, position)
            if position + length > len(data):
                raise ValueError("a field reaches beyond its message")
            if tag >> 3 == field:
                yield data[position : position + length]
            position += length
        else:
            raise ValueError(f"wire type {kind} is not in use")


def varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a number, and return where it ends; raises ValueError if it has no end."""
    # Nearly all have one byte, and large messages have many numbers.
    if position < len(data) and (byte := data[position]) < 0x80:
        return byte, position + 1
    value = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a number without an end")
