"""JSON files of publishers: one array of objects, or one object per line."""

import io
import itertools
import json
from collections.abc import Iterator
from typing import IO

from cbench_server.datasets.readers.jsonl_file import iterate_jsonl
from cbench_server.datasets.readers.lines import BadLines, DataFile, open_file
from cbench_server.errors import BadDataset
from cbench_server.limits import MAX_LINE_BYTES
from cbench_server.types import Example

_CHUNK = 1 << 20
_decode = json.JSONDecoder().raw_decode


def iterate_json(path: DataFile, bad_lines: BadLines) -> Iterator[Example]:
    """Iterate the objects of a file, holding one of them (and as much again) in memory.

    Only lines can be skipped: after a fault in an array, the start of the next object is unknown.
    """
    try:
        with io.TextIOWrapper(open_file(path), encoding="utf-8-sig") as stream:
            start = stream.read(_CHUNK).lstrip()
            if start.startswith("["):
                yield from _array(path, stream, start[1:])
                return
    except UnicodeDecodeError as error:
        raise BadDataset(f"{path} is not UTF-8: {error.reason}") from error
    yield from iterate_jsonl(path, bad_lines)


def _array(path: DataFile, stream: IO[str], text: str) -> Iterator[Example]:
    for number in itertools.count():
        text = text.lstrip(", \t\r\n")
        step = _CHUNK
        while True:
            try:
                element, end = _decode(text)
                break
            except json.JSONDecodeError as error:
                if text.startswith("]"):
                    return
                # Each attempt reads as much again, so that decoding stays linear.
                more = stream.read(step) if len(text) < MAX_LINE_BYTES else ""
                if not more:
                    raise BadDataset(f"{path}, element {number}: {error.msg}") from error
                text = (text + more).lstrip(", \t\r\n")
                step = len(text)
        if not isinstance(element, dict):
            raise BadDataset(f"{path}, element {number}: not an object")
        yield element
        text = text[end:]
