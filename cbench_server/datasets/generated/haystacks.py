"""Haystacks: texts of any number of sentences that needles are put into."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cache, lru_cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

from cbench_server.datasets.embedded.sets import LONG_NOTES
from cbench_server.datasets.hub.mirror import mirror_folder
from cbench_server.errors import BadDataset

# Written for this; it says nothing, and the same thing again.
NOISE = (
    "The kettle is on the stove.",
    "The window faces the garden.",
    "A clock ticks in the hall.",
    "The rain has stopped for now.",
    "Someone closes a door upstairs.",
)
_MOST_BYTES = 20_000_000
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9])|\n+")


@cache
def essay() -> tuple[str, ...]:
    """Return the sentences of the embedded dataset long-notes, written for this package."""
    return _sentences([str(example["context"]) for example in LONG_NOTES.examples()])


def given_essay(name: str, data_dir: str) -> tuple[str, ...]:
    """Return the sentences of `haystacks/NAME.txt` in the user's mirror; raise BadDataset."""
    file = _file_of(name, data_dir)
    return _of_file(file, file.stat().st_mtime_ns)


def digest_of(name: str, data_dir: str) -> str:
    """Return the digest of `haystacks/NAME.txt`, by which two texts of one name are told apart."""
    return f"sha256:{sha256(_file_of(name, data_dir).read_bytes()).hexdigest()}"


def _file_of(name: str, data_dir: str) -> Path:
    folder = mirror_folder(data_dir)
    if folder is None:
        raise BadDataset(
            f'the haystack "{name}" is read from a folder of yours: put it at '
            f"DIR/haystacks/{name}.txt and say --data-dir DIR"
        )
    file = folder / "haystacks" / f"{name}.txt"
    try:
        size = file.stat().st_size
    except OSError as error:
        raise BadDataset(f"the haystack {file} cannot be read: {error.strerror}") from None
    if size > _MOST_BYTES:
        raise BadDataset(f"the haystack {file} has {size:,} bytes; {_MOST_BYTES:,} are the most")
    return file


@lru_cache(maxsize=4)
def _of_file(file: Path, changed: int) -> tuple[str, ...]:
    try:
        found = _sentences([file.read_text("utf-8")])
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(f"the haystack {file} is no text in UTF-8: {error}") from None
    if not found:
        raise BadDataset(f"the haystack {file} is empty")
    return found


def _sentences(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        sentence.strip() for text in texts for sentence in _SENTENCE.split(text) if sentence.strip()
    )


def sentences(source: Sequence[str], count: int, start: int = 0) -> list[str]:
    """Return so many sentences of a source from `start` on; it is repeated as often as needed."""
    size = len(source)
    return [source[(start + place) % size] for place in range(count)]


def with_needles(
    hay: Sequence[str], needles: Sequence[str], depths: Sequence[int], joint: str
) -> str:
    """Put each needle where its depth is, in percent of the characters, and join it all.

    A needle stands between two sentences. Depths come in order; needles of the
    same depth stay in theirs.
    """
    ends = list(accumulate(map(len, hay), initial=0))
    places = zip((bisect_left(ends, ends[-1] * d // 100) for d in depths), needles, strict=True)
    parts: list[str] = []
    done = 0
    for place, needle in places:
        parts += [*hay[done:place], needle]
        done = place
    return joint.join([*parts, *hay[done:]])
