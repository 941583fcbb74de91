"""Sizes of texts: how they are estimated, and from when on they are long."""

from collections.abc import Mapping
from typing import Any

LONG_TEXT = 64 * 1024
"""Characters beyond which a text is not worked on by the event loop itself."""


def text_size(example: Mapping[str, Any]) -> int:
    """Estimate the bytes an example holds, cheaply: its texts, one level of lists deep."""
    size = 0
    for value in example.values():
        # Nearly all is text, and asking for the type itself is three times as quick.
        if type(value) is str or isinstance(value, str | bytes):
            size += len(value)
        elif isinstance(value, list):
            size += sum([len(item) if isinstance(item, str) else 64 for item in value])
        else:
            size += 16
    return size
