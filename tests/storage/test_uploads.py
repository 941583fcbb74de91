"""Uploads: named by content, whole or not there; in a store of either kind."""

import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cbench_server.errors import NotFound, StoreCorrupt, StoreError, Unencodable
from cbench_server.storage.uploads import UploadStore
from tests.fixtures.stores import Place

EXAMPLES = [
    {"id": 1, "context": "short"},
    {"id": "1", "context": "long " * 5000, "n": 2**63, "none": None, "b": b"\0\xff"},
    {"id": 1.0, "deep": {"list": [1, [2, {"x": math.inf}]]}},
]


@pytest.fixture
async def uploads(place: Place) -> AsyncIterator[UploadStore]:
    store = place.open()
    uploads = store.uploads(place.home, 0, 0)
    yield uploads
    uploads.close()
    await store.close()


def upload(uploads: UploadStore, examples: list[dict[str, object]]) -> str:
    with uploads.writer() as writer:
        for example in examples:
            writer.add(example)
        return writer.finish()


class Bytes:
    """The bytes of an upload of one piece, where they are kept."""

    def __init__(self, place: Place, digest: str) -> None:
        self._place = place
        self._path = place.home / "uploads" / f"{digest}.examples"

    def read(self) -> bytes:
        if self._place.is_sqlite:
            return self._path.read_bytes()
        ((body,),) = self._place.sql("SELECT body FROM upload_parts")
        return bytes(body)

    def write(self, body: bytes) -> None:
        if self._place.is_sqlite:
            self._path.write_bytes(body)
        else:
            self._place.sql(f"UPDATE upload_parts SET body = '\\x{body.hex()}'")


def test_examples_come_back_in_order_with_their_types(uploads: UploadStore) -> None:
    digest = upload(uploads, EXAMPLES)
    found = list(uploads.iterate(digest))
    assert found == EXAMPLES
    assert [type(example["id"]) for example in found] == [int, str, float]
    assert uploads.count(digest) == 3


def test_the_digest_follows_content_and_order_but_not_the_order_of_keys(
    uploads: UploadStore,
) -> None:
    turned = [dict(reversed(example.items())) for example in EXAMPLES]
    assert upload(uploads, turned) == upload(uploads, EXAMPLES)
    assert upload(uploads, EXAMPLES[::-1]) != upload(uploads, EXAMPLES)
    assert upload(uploads, [{"id": 1}]) != upload(uploads, [{"id": True}])


def test_an_empty_upload_is_one_too(uploads: UploadStore) -> None:
    digest = upload(uploads, [])
    assert list(uploads.iterate(digest)) == []


@pytest.mark.parametrize("digest", ["", "../cbench.db", "0" * 64, "A" * 64, "0" * 63 + "\n"])
def test_an_unknown_digest_is_not_found(uploads: UploadStore, digest: str) -> None:
    with pytest.raises(NotFound):
        next(uploads.iterate(digest))


def test_an_upload_that_is_broken_off_leaves_nothing(uploads: UploadStore, place: Place) -> None:
    with pytest.raises(Unencodable, match="when"), uploads.writer() as writer:
        writer.add({"id": 1})
        writer.add({"when": {1}})
    assert list((place.home / "uploads").iterdir()) == []
    assert uploads.all() == []


def test_every_flipped_byte_is_noticed(uploads: UploadStore, place: Place) -> None:
    digest = upload(uploads, [{"id": 1, "context": "x" * 50}, {"id": 2}])
    kept = Bytes(place, digest)
    whole = kept.read()
    for position in range(len(whole)):
        kept.write(whole[:position] + bytes([whole[position] ^ 0x08]) + whole[position + 1 :])
        with pytest.raises(StoreCorrupt, match="Upload the examples again"):
            list(uploads.iterate(digest))


@pytest.mark.parametrize("kept", [0, 10, 30, -9, -1])
def test_a_truncated_upload_is_noticed(uploads: UploadStore, place: Place, kept: int) -> None:
    digest = upload(uploads, [{"id": 1, "context": "x" * 50}])
    body = Bytes(place, digest)
    body.write(body.read()[:kept])
    with pytest.raises(StoreCorrupt):
        list(uploads.iterate(digest))


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        UploadStore(tmp_path / "file").writer()
