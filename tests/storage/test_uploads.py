"""Uploads: named by content, whole or not there."""

import math
from pathlib import Path

import pytest

from cbench_server.errors import NotFound, StoreCorrupt, StoreError, Unencodable
from cbench_server.storage.uploads import UploadStore

EXAMPLES = [
    {"id": 1, "context": "short"},
    {"id": "1", "context": "long " * 5000, "n": 2**63, "none": None, "b": b"\0\xff"},
    {"id": 1.0, "deep": {"list": [1, [2, {"x": math.inf}]]}},
]


def upload(home: Path, examples: list[dict[str, object]]) -> str:
    with UploadStore(home).writer() as writer:
        for example in examples:
            writer.add(example)
        return writer.finish()


def test_examples_come_back_in_order_with_their_types(home: Path) -> None:
    digest = upload(home, EXAMPLES)
    uploads = UploadStore(home)
    found = list(uploads.iterate(digest))
    assert found == EXAMPLES
    assert [type(example["id"]) for example in found] == [int, str, float]
    assert uploads.count(digest) == 3


def test_the_digest_follows_content_and_order_but_not_the_order_of_keys(home: Path) -> None:
    turned = [dict(reversed(example.items())) for example in EXAMPLES]
    assert upload(home, turned) == upload(home, EXAMPLES)
    assert upload(home, EXAMPLES[::-1]) != upload(home, EXAMPLES)
    assert upload(home, [{"id": 1}]) != upload(home, [{"id": True}])


def test_an_empty_upload_is_one_too(home: Path) -> None:
    digest = upload(home, [])
    assert list(UploadStore(home).iterate(digest)) == []


@pytest.mark.parametrize("digest", ["", "../cbench.db", "0" * 64, "A" * 64, "0" * 63 + "\n"])
def test_an_unknown_digest_is_not_found(home: Path, digest: str) -> None:
    with pytest.raises(NotFound):
        next(UploadStore(home).iterate(digest))


def test_an_upload_that_is_broken_off_leaves_nothing(home: Path) -> None:
    with pytest.raises(Unencodable, match="when"), UploadStore(home).writer() as writer:
        writer.add({"id": 1})
        writer.add({"when": {1}})
    assert list((home / "uploads").iterdir()) == []


def test_every_flipped_byte_is_noticed(home: Path) -> None:
    digest = upload(home, [{"id": 1, "context": "x" * 50}, {"id": 2}])
    path = home / "uploads" / f"{digest}.examples"
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x08]) + whole[position + 1 :])
        with pytest.raises(StoreCorrupt, match="Upload the examples again"):
            list(UploadStore(home).iterate(digest))


@pytest.mark.parametrize("kept", [0, 10, 30, -9, -1])
def test_a_truncated_upload_is_noticed(home: Path, kept: int) -> None:
    digest = upload(home, [{"id": 1, "context": "x" * 50}])
    path = home / "uploads" / f"{digest}.examples"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(StoreCorrupt):
        list(UploadStore(home).iterate(digest))


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        UploadStore(tmp_path / "file").writer()
