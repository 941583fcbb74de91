"""JSON files of publishers: one array of objects, or one object per line."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from cbench_server.datasets.readers.jsonl_file import iterate_jsonl
from cbench_server.datasets.readers.lines import MAX_LINE_BYTES, BadLines
from cbench_server.errors import BadDataset
from cbench_server.types import Example

_CHUNK = 1 << 20
_decode = json.JSONDecoder().raw_decode


def iterate_json(
    path: Path,
    *,
    skip_bad_lines: bool = False,
    on_bad_line: Callable[[BadDataset], None] | None = None,
) -> Iterator[Example]:
    """Iterate the objects of a file, holding one of them (and as much again) in memory.

    Only lines can be skipped: after a fault in an array, the start of the next object is unknown.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            start = stream.read(_CHUNK).lstrip()
            if start.startswith("["):
                yield from _array(path, stream, start[1:])
                return
    except UnicodeDecodeError as error:
        raise BadDataset(f"{path} is not UTF-8: {error.reason}") from error
    except OSError as error:
        raise BadDataset(f"cannot read {path}: {error.strerror or error}") from error
    yield from iterate_jsonl(path, BadLines(path, skip_bad_lines, on_bad_line))


def _array(path: Path, stream: IO[str], text: str) -> Iterator[Example]:
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
