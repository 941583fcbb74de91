"""Folders and patterns of files, read as one dataset."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.datasets import iterate_file
from cbench_server.datasets.readers.files import name_of_file
from cbench_server.errors import BadDataset
from cbench_server.registry import load_dataset
from tests.fixtures import preloaded
from tests.fixtures.preloaded import CBENCH


def example(number: int) -> dict[str, Any]:
    return {"id": f"e{number}", "context": f"It is {number}.", "question": "?", "answer": "x"}


def lines(*numbers: int) -> bytes:
    return b"".join(json.dumps(example(number)).encode() + b"\n" for number in numbers)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as Spark or a log shipper leaves it."""
    shards = tmp_path / "traces"
    (shards / "day=2").mkdir(parents=True)
    (shards / "part-1.jsonl.gz").write_bytes(gzip.compress(lines(3, 4)))
    (shards / "part-0.jsonl").write_bytes(lines(1, 2))
    (shards / "day=2" / "part-0.jsonl").write_bytes(lines(0))
    (shards / "_SUCCESS").touch()
    (shards / "_part-2.jsonl").write_bytes(lines(8))
    (shards / ".part-3.jsonl").write_bytes(lines(9))
    (shards / "README.md").write_text("not data")
    return shards


def ids(path: Path) -> list[str]:
    return [each["id"] for each in iterate_file(path)]


def test_a_folder_is_read_in_the_order_of_its_names(folder: Path) -> None:
    assert ids(folder) == ["e0", "e1", "e2", "e3", "e4"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("part-*.jsonl", ["e1", "e2"]),
        ("part-*", ["e1", "e2", "e3", "e4"]),
        ("**/part-0.jsonl", ["e0", "e1", "e2"]),
        ("part-[1-9].jsonl.gz", ["e3", "e4"]),
    ],
)
def test_a_pattern_is_read_in_the_order_of_its_names(
    folder: Path, pattern: str, found: list[str]
) -> None:
    assert ids(folder / pattern) == found


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "a[1].jsonl"
    path.write_bytes(lines(1))
    (tmp_path / "a1.jsonl").write_bytes(lines(2))
    assert ids(path) == ["e1"]


def test_files_of_several_formats_are_refused(folder: Path) -> None:
    (folder / "part-1.csv").write_text("id,context\n1,x\n")
    with pytest.raises(BadDataset, match=r"several formats \(\.csv, \.jsonl\)"):
        iterate_file(folder)
    assert ids(folder / "*.jsonl") == ["e1", "e2"]


def test_a_bad_line_names_its_shard(folder: Path) -> None:
    (folder / "part-2.jsonl").write_bytes(b"{\n")
    with pytest.raises(BadDataset, match=r"part-2\.jsonl, line 1: invalid JSON"):
        ids(folder)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("traces", "traces"),
        ("traces/part-*.jsonl", "part"),
        ("traces/*.jsonl", "traces"),
        ("traces/**/*.jsonl", "traces"),
        ("traces/part-0.jsonl", "part-0"),
    ],
)
def test_rows_are_tagged_with_what_is_fixed_of_a_name(folder: Path, path: str, name: str) -> None:
    assert name_of_file(folder.parent / path) == name


class Echo:
    """Returns what it is given."""

    name = "echo"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return example


def test_evaluate_takes_a_folder(folder: Path) -> None:
    result = evaluate([Echo()], load_dataset(folder), evaluators=[])
    assert [row.example_id for row in result.rows] == ["e0", "e1", "e2", "e3", "e4"]
    assert {row.dataset for row in result.rows} == {"traces"}


def test_the_cli_takes_a_pattern_and_refuses_addresses(folder: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "CBENCH_HOME": str(tmp_path / "home")}

    def run(dataset: str) -> Any:
        command = [str(CBENCH), "run", "--builtin", "identity", "--dataset", dataset, "--quiet"]
        return preloaded.run(
            [*command, "--output", "jsonl"], capture_output=True, text=True, env=environment
        )

    done = run(f"{folder}/part-*")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["example_id"] for row in rows} == {"e1", "e2", "e3", "e4"}
    assert {row["dataset"] for row in rows} == {"part"}
    refused = run("s3://bucket/traces/*.jsonl")
    assert refused.returncode == 2
    assert "cbench: s3://bucket/traces/*.jsonl is an address" in refused.stderr
    assert "[data.NAME] url" in refused.stderr
