"""Splits and revisions come from clients: they are names, whatever they look like."""

import gzip
import json
from pathlib import Path

import pytest

from cbench_client import BenchClient, Refused
from cbench_server.daemon.embedded import embedded
from cbench_server.datasets import RECORDS
from cbench_server.datasets.hub.any import hub_record
from cbench_server.errors import BadDataset

PRIVATE = {"question": "CANARY-77", "answer": "CANARY-78 #### 5"}
SPLITS = (
    "../../../../private/chatlog",
    "..",
    "../train",
    "/etc/passwd",
    "a::/etc/passwd",
    "a::ftp://127.0.0.1:1/x",
    "a::http://127.0.0.1:1/x?",
    "a/b",
    "a\\b",
    "a b",
    "a\n",
    "{split}",
    "a#",
    "a?b",
    "train[:10]",
    "%2e%2e%2fprivate",
    "a" * 201,
    "測" * 100,
)
REVISIONS = (
    "../../other/repo",
    "main/../../x",
    "main/..",
    "/main",
    "main/",
    "main//x",
    "x::ftp://127.0.0.1:1",
    "http://127.0.0.1:1/x",
    "main@other",
    "main?x=1",
    "main#x",
    "a b",
    "main\n",
    "%2e%2e",
    "a" * 201,
)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mirror, and beside it a file that is nobody's business."""
    home = tmp_path_factory.mktemp("data")
    good = home / "mirror" / "openai" / "gsm8k" / "main"
    good.mkdir(parents=True)
    (good / "test.jsonl").write_text(json.dumps({"question": "2+2?", "answer": "#### 4"}))
    (home / "private").mkdir()
    (home / "private" / "chatlog.jsonl").write_text(json.dumps(PRIVATE))
    with gzip.open(home / "mirror" / "chatlog.jsonl.gz", "wt") as stream:
        stream.write(json.dumps(PRIVATE))
    return home / "mirror"


def test_no_split_or_revision_is_a_path_or_an_address(mirror: Path) -> None:
    """Whatever dataset of the hub it is for."""
    records = [*(record for record in RECORDS if record.hub), hub_record("hf:org/name")]
    for record in records:
        for field, texts in (("split", SPLITS), ("revision", REVISIONS)):
            for text in texts:
                with pytest.raises(BadDataset, match=f"not a valid {field}"):
                    list(record.load(record.default_config, data_dir=mirror, **{field: text}))


def test_a_client_reads_no_file_beside_the_mirror(mirror: Path, tmp_path: Path) -> None:
    with (
        embedded(home=str(tmp_path), data_dir=str(mirror)) as daemon,
        BenchClient(daemon) as client,
    ):
        for field, text in (
            ("split", SPLITS[0]),
            ("split", "../../../chatlog"),
            ("split", "a::ftp://127.0.0.1:1/x"),
            ("revision", "x::ftp://127.0.0.1:1"),
        ):
            spec = {
                "systems": [{"builtin": "identity"}],
                "datasets": [{"name": "gsm8k", "max_examples": 2, field: text}],
            }
            with pytest.raises(Refused, match=f"not a valid {field}") as refused:
                client.start(spec)
            assert "CANARY" not in str(refused.value)


@pytest.mark.parametrize("config", ["a" * 300, "測" * 100, "../../private", "a/b", "/etc", "a\n"])
def test_a_config_of_the_hub_is_the_name_of_a_file_or_refused(
    mirror: Path, tmp_path: Path, config: str
) -> None:
    with (
        embedded(home=str(tmp_path), data_dir=str(mirror)) as daemon,
        BenchClient(daemon) as client,
    ):
        spec = {
            "systems": [{"builtin": "identity"}],
            "datasets": [{"name": "hf:openai/gsm8k", "config": config}],
        }
        with pytest.raises(Refused, match="not a valid config") as refused:
            client.start(spec)
        assert refused.value.code == "INVALID_ARGUMENT"
        assert str(mirror) not in str(refused.value)


@pytest.mark.parametrize("name", ["hf:" + "a" * 300 + "/b", "hf:a/" + "b" * 300, "hf:測/試"])
def test_a_repository_of_the_hub_has_a_name_of_the_hub(name: str) -> None:
    with pytest.raises(BadDataset, match="not a dataset of the hub"):
        hub_record(name)
