"""Shuffled examples: a random order fixed by a seed, without holding them in memory."""

import pickle
import tempfile
from collections.abc import Iterator
from hashlib import blake2b

from cbench_server.types import Example

_SPARE_BYTES = 8 * 1024 * 1024


def shuffled(examples: Iterator[Example], seed: int) -> Iterator[Example]:
    """Iterate the examples ordered by a digest of the seed and their position.

    All of them are read first, into a temporary file; about 60 bytes of each stay in memory.
    An example without an id gets its position in the source, as if nothing were shuffled.
    """
    with tempfile.SpooledTemporaryFile(max_size=_SPARE_BYTES) as file:
        places: list[tuple[bytes, int]] = []
        for position, example in enumerate(examples):
            key = blake2b(f"{seed}:{position}".encode(), digest_size=12).digest()
            places.append((key, file.tell()))
            if example.get("id") is None:
                example = {**example, "id": position}
            pickle.dump(example, file)
        places.sort()
        for _, offset in places:
            file.seek(offset)
            yield pickle.load(file)
