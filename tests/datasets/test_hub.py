"""The hub: the real libraries against a small server that speaks enough of its protocol."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cbench_server.registry import registry
from tests.fixtures import preloaded

from .hub_server import BEHIND_DATASETS, COMMIT, HubServer
from .test_records import GOLDEN

# The libraries read their settings once, so each load is a program of its own. They wait
# seconds between attempts; how long is not what is tested here.
_PROGRAM = """
import json, sys
import datasets
datasets.config.STREAMING_READ_RETRY_INTERVAL = 0
datasets.config.STREAMING_READ_RATE_LIMIT_RETRY_INTERVAL = 0
datasets.config.STREAMING_READ_MAX_RETRIES = 3
from cbench_server.errors import BadDataset
from cbench_server.registry import load_dataset, registry
name, config, revision = sys.argv[1:]
source = registry.dataset(name).hub
try:
    examples = [*load_dataset(name, config=config, revision=revision)]
    config = config or registry.dataset(name).default_config
    print(json.dumps([examples, source.provenance(config)]))
except BadDataset as error:
    print(json.dumps(str(error)))
"""

Load = Callable[..., Any]


@pytest.fixture
def load(hub: HubServer, tmp_path: Path) -> Load:
    """Load a dataset from that hub in a program of its own."""

    def run(name: str, config: str = "", revision: str = "") -> Any:
        done = preloaded.run(
            [sys.executable, "-c", _PROGRAM, name, config, revision],
            capture_output=True,
            text=True,
            env={
                **{key: text for key, text in os.environ.items() if not key.startswith("CBENCH_")},
                "HF_ENDPOINT": hub.address,
                "HF_HOME": str(tmp_path / "cache"),
                "HF_HUB_OFFLINE": "0",
            },
            preload=BEHIND_DATASETS,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("name", ["gsm8k", "qmsum", "nolima:needle_set", "longmemeval"])
def test_examples_come_from_the_hub_as_from_a_mirror(load: Load, name: str) -> None:
    base, _, config = name.partition(":")
    examples, provenance = load(base, config)
    assert examples == GOLDEN[name]
    split = registry.dataset(base).split
    assert provenance == {"split": split, "revision": COMMIT, "files": {}}


def test_columns_that_begin_empty_keep_their_type(load: Load, hub: HubServer) -> None:
    folder = hub.folder / "xinrongzhang2022/InfiniteBench"
    folder.mkdir(parents=True)
    # The reader takes ten megabytes at a time, and tells types from the first.
    rows = [
        {"id": n, "context": "x" * 1000, "input": "?", "answer": [n], "options": []}
        for n in range(11_000)
    ]
    rows.append(
        {"id": 11_000, "context": "x", "input": "?", "answer": ["b"], "options": ["a", "b"]}
    )
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "longbook_choice_eng.jsonl").write_text(lines)
    examples, _ = load("infinitebench", "longbook_choice_eng")
    assert len(examples) == 11_001
    assert examples[7]["answer"] == "7"
    assert examples[-1]["question"] == "?\n\nA) a  B) b"


def test_a_pinned_revision_is_the_one_asked_for(load: Load, hub: HubServer) -> None:
    examples, _ = load("gsm8k", "main", COMMIT)
    assert examples == GOLDEN["gsm8k"]
    read = [path for path in hub.asked if "/resolve/" in path]
    assert read
    assert all(f"/resolve/{COMMIT}/" in path for path in read)


def test_a_dropped_connection_costs_no_row(load: Load, hub: HubServer) -> None:
    rows = [{"question": f"{n}+0?" + "x" * 500, "answer": f"#### {n}"} for n in range(2_000)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (hub.folder / "openai/gsm8k/test.jsonl").write_text(lines)
    hub.drops["test.jsonl"] = 2
    answers = [example["answer"] for example in load("gsm8k")[0]]
    assert answers == [str(n) for n in range(2_000)]
    assert hub.drops["test.jsonl"] == 0


def test_a_hub_that_asks_for_patience_gets_it(load: Load, hub: HubServer) -> None:
    hub.refusals["test.jsonl"] = 1
    assert load("gsm8k")[0] == GOLDEN["gsm8k"]
    assert hub.refusals["test.jsonl"] == 0


def test_a_missing_file_is_answered_with_where_to_put_one(load: Load, hub: HubServer) -> None:
    (hub.folder / "openai/gsm8k/test.jsonl").unlink()
    message = load("gsm8k")
    assert message.startswith('dataset "gsm8k": the hub did not deliver openai/gsm8k (')
    assert "put its rows at DIR/openai/gsm8k/main/test.jsonl (or .jsonl.gz, .parquet)" in message
    assert message.endswith("and pass --data-dir DIR.")


def test_a_missing_repository_is_answered_likewise(load: Load) -> None:
    assert "put its rows at DIR/juletxara/mgsm/de/test.jsonl" in load("mgsm", "de")


def test_a_hub_out_of_reach_leaves_the_revision_open(hub: HubServer, tmp_path: Path) -> None:
    hub.shutdown()
    hub.server_close()
    program = (
        "from cbench_server.registry import registry;"
        "print(registry.dataset('gsm8k').hub.provenance('main', revision='v1'))"
    )
    done = preloaded.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "cache")},
        check=True,
    )
    assert done.stdout == "{'split': 'test', 'revision': 'v1', 'files': {}}\n"


def test_the_code_of_a_dataset_is_never_executed(load: Load, tmp_path: Path) -> None:
    assert "put its rows at DIR/google/IFEval/default/train.jsonl" in load("ifeval")
    assert not (tmp_path / "executed").exists()
