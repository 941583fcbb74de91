"""Filling a mirror from a hub, and checking it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench_server.registry import load_dataset
from tests.fixtures import preloaded

from .hub_server import BEHIND_DATASETS, HubServer
from .test_records import GOLDEN

_CBENCH = Path(sys.executable).parent / "cbench"

Cbench = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cbench(hub: HubServer, tmp_path: Path) -> Cbench:
    """Run `cbench datasets` with that hub."""

    def run(*args: str | Path) -> subprocess.CompletedProcess[str]:
        inherited = {key: text for key, text in os.environ.items() if not key.startswith("CBENCH_")}
        return preloaded.run(
            [_CBENCH, "datasets", *args],
            capture_output=True,
            text=True,
            env={**inherited, "HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "cache")},
            preload=BEHIND_DATASETS,
        )

    return run


def test_a_downloaded_mirror_gives_the_same_examples_and_checks_out(
    cbench: Cbench, hub: HubServer, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    names = ("gsm8k:main", "qmsum", "nolima:needle_set", "longmemeval")
    done = cbench("download", *names, "--to", mirror)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "openai/gsm8k/main/test.jsonl.gz",
        "tau/scrolls/qmsum/validation.jsonl.gz",
        "amodaresi/NoLiMa/needlesets/needle_set.json",
        "amodaresi/NoLiMa/haystack/rand_shuffle/rand_book_1.txt",
        "amodaresi/NoLiMa/haystack/rand_shuffle/rand_book_2.txt",
        "xiaowu0162/longmemeval-cleaned/longmemeval_s_cleaned.json",
    ]
    hub.shutdown()
    for name in names:
        golden = GOLDEN[name.removesuffix(":main")]
        assert [*load_dataset(name, data_dir=mirror)] == golden
    assert cbench("check", mirror).stdout == "6 files are as downloaded.\n"
    assert "0 files downloaded" in cbench("download", *names, "--to", mirror).stderr


def test_a_damaged_mirror_is_found_out(cbench: Cbench, tmp_path: Path) -> None:
    cbench("download", "gsm8k", "longmemeval", "--to", tmp_path)
    with (tmp_path / "xiaowu0162/longmemeval-cleaned/longmemeval_s_cleaned.json").open(
        "a"
    ) as stream:
        stream.write(" ")
    (tmp_path / "openai/gsm8k/main/test.jsonl.gz").unlink()
    done = cbench("check", tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "openai/gsm8k/main/test.jsonl.gz: missing",
        "xiaowu0162/longmemeval-cleaned/longmemeval_s_cleaned.json: changed",
    ]


def test_a_download_that_breaks_leaves_nothing_half_done(
    cbench: Cbench, hub: HubServer, tmp_path: Path
) -> None:
    (hub.folder / "openai/gsm8k/test.jsonl").write_text('{"question": "1?", "answer": "1"}\n{"qu')
    mirror = tmp_path / "mirror"
    done = cbench("download", "gsm8k", "--to", mirror)
    assert done.returncode == 2
    assert "the hub did not deliver openai/gsm8k" in done.stderr
    assert not [path for path in mirror.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mini-qa", 'dataset "mini-qa" is here already'),
        ("gsm8k:hard", 'has no config "hard"; it has: main, socratic'),
        ("gsm9k", 'did you mean "gsm8k"?'),
    ],
)
def test_what_cannot_be_downloaded_is_refused(
    cbench: Cbench, tmp_path: Path, name: str, message: str
) -> None:
    done = cbench("download", name, "--to", tmp_path / "mirror")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "mirror").exists()
