"""Checks of examples: each needs a text context and a unique id."""

import unicodedata
from hashlib import blake2b

from cbench_server.errors import BadDataset
from cbench_server.limits import MAX_ID
from cbench_server.types import Example

NO_CONTEXT = '"context" is missing'
"""What the message begins with where a mapping may help."""
_DIGEST_BYTES = 16
_ENTRY_BYTES = _DIGEST_BYTES + 8
_SHARDS = 4096


class IdLedger:
    """Remembers at which position each id of one dataset was met.

    Integers that count up from the first one on, as positions do, are kept as
    a range. Of all other ids it keeps a digest and a position, packed into byte
    strings that are short enough to search: a fifth of the size of a dict,
    about 27 MB for a million ids. Ids keep their type: 1 and "1" are different. Texts
    that Unicode holds for the same, such as two ways to write an accent, are one id: people and
    other programs could not tell their rows apart.
    """

    def __init__(self) -> None:
        self._counted = range(0)
        self._start = 0
        self._shards: list[bytearray] = []

    def add(self, example_id: str | int, position: int) -> int | None:
        """Note the id and return None, or return the position that has it already."""
        if isinstance(example_id, int):
            if example_id in self._counted:
                return self._start + example_id - self._counted.start
            if not self._shards and self._counts_on(example_id, position):
                return None
        return self._add_digest(example_id, position)

    def _counts_on(self, number: int, position: int) -> bool:
        if not self._counted:
            self._start = position
            self._counted = range(number, number + 1)
            return True
        if number != self._counted.stop or position != self._start + len(self._counted):
            return False
        self._counted = range(self._counted.start, number + 1)
        return True

    def _add_digest(self, example_id: str | int, position: int) -> int | None:
        if not self._shards:
            self._shards = [bytearray() for _ in range(_SHARDS)]
        tag = "i"
        if isinstance(example_id, str):
            tag, example_id = "s", unicodedata.normalize("NFC", example_id)
        text = f"{tag}{example_id}".encode("utf-8", "surrogatepass")
        digest = blake2b(text, digest_size=_DIGEST_BYTES).digest()
        shard = self._shards[int.from_bytes(digest[:2], "big") % _SHARDS]
        at = shard.find(digest)
        while at % _ENTRY_BYTES and at != -1:
            at = shard.find(digest, at + 1)
        if at != -1:
            return int.from_bytes(shard[at + _DIGEST_BYTES : at + _ENTRY_BYTES], "big")
        shard += digest + position.to_bytes(8, "big")
        return None


def check_example(example: Example, position: int, dataset: str, seen: IdLedger) -> str | int:
    """Return the example's id, or raise BadDataset if a run cannot use the example.

    `position` counts from 0 and serves as the id where `id` is missing or
    null. The context must be text, even in an example that has `turns`.
    """
    where = f'dataset "{dataset}", position {position}'
    _check_context(example, where)
    given = example.get("id")
    if given is not None and (isinstance(given, bool) or not isinstance(given, (str, int))):
        raise BadDataset(
            f"{where}: the id {given!r:.80} is of type {_type_name(given)}; "
            "an id is a string or an integer"
        )
    if isinstance(given, str) and len(given) > MAX_ID:
        # It stands in each row, and in every list of rows.
        raise BadDataset(
            f'{where}: the id "{given[:20]}..." has {len(given):,} characters; an id has at most '
            f"{MAX_ID:,}"
        )
    example_id: str | int = position if given is None else given
    first = seen.add(example_id, position)
    if first is not None:
        raise BadDataset(
            _duplicate(dataset, example_id, first, position, is_given=given is not None)
        )
    return example_id


def _check_context(example: Example, where: str) -> None:
    if "context" not in example:
        # Keys can be anything a file holds; a few of them are enough to recognise the example.
        keys = ", ".join(map(str, list(example)[:10])) or "nothing"
        raise BadDataset(
            f"{where}: {NO_CONTEXT} (the example has: {keys:.200}); "
            "every example needs a context, or a mapping that says which field holds it"
        )
    context = example["context"]
    if not isinstance(context, str):
        raise BadDataset(
            f'{where}: "context" is of type {_type_name(context)}; it must be a string'
        )


def _duplicate(
    dataset: str, example_id: str | int, first: int, position: int, *, is_given: bool
) -> str:
    shown = f'"{example_id:.80}"' if isinstance(example_id, str) else str(example_id)
    how = "" if is_given else " (the second has no id, so its position serves as one)"
    return (
        f'dataset "{dataset}": positions {first} and {position} have the same id {shown}{how}; '
        "ids must be unique in a dataset"
    )


def _type_name(value: object) -> str:
    return "null" if value is None else type(value).__name__
