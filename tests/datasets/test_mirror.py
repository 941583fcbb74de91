"""The local mirror: where files may be, what is said when they are not, and how JSON is read."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cbench_server.datasets import RECORDS
from cbench_server.datasets.readers.files import iterate_file
from cbench_server.errors import BadDataset, CbenchError
from cbench_server.registry import load_dataset

from .test_records import FIXTURES, GOLDEN

_BY_NAME = {record.name: record for record in RECORDS}
_GSM8K = {"question": "1+1?", "answer": "#### 2"}


def _write(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_gzipped_file_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "openai/gsm8k/main"
    folder.mkdir(parents=True)
    (folder / "test.jsonl.gz").write_bytes(gzip.compress(json.dumps(_GSM8K).encode()))
    assert [e["answer"] for e in load_dataset("gsm8k", data_dir=tmp_path)] == ["2"]


def test_a_parquet_file_will_do(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = [json.loads(line) for line in (FIXTURES / _SCIFACT).read_text().splitlines()]
    for part in ("claims", "corpus"):
        shutil.copytree(FIXTURES / "allenai/scifact" / part, tmp_path / "allenai/scifact" / part)
    (tmp_path / _SCIFACT).unlink()
    parquet.write_table(pa.Table.from_pylist(rows), (tmp_path / _SCIFACT).with_suffix(".parquet"))
    assert [*load_dataset("scifact", data_dir=tmp_path)] == GOLDEN["scifact"]


_SCIFACT = "allenai/scifact/claims/validation.jsonl"


def test_the_variable_names_the_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CBENCH_DATA_DIR", str(FIXTURES))
    assert [*load_dataset("gsm8k")] == GOLDEN["gsm8k"]
    assert _BY_NAME["gsm8k"].is_available()


def test_rows_of_another_split_stand_in_only_while_nobody_asks_for_one(tmp_path: Path) -> None:
    source = FIXTURES / "hotpotqa/hotpot_qa/distractor/validation.jsonl"
    folder = tmp_path / "hotpotqa/hotpot_qa/distractor"
    folder.mkdir(parents=True)
    shutil.copy(source, folder / "train.jsonl")
    record = _BY_NAME["hotpotqa"]
    assert [*record.examples(data_dir=tmp_path)] == GOLDEN["hotpotqa"]
    assert [*record.examples(data_dir=tmp_path, split="train")] == GOLDEN["hotpotqa"]
    assert record.hub is not None
    assert record.hub.split_here("distractor", tmp_path) == "train"
    assert record.hub.provenance("distractor", data_dir=tmp_path)["split"] == "train"
    asked = record.hub.parts["distractor"][0].of_split("validation")
    assert asked.in_mirror(tmp_path) is None
    shutil.copy(source, folder / "validation.jsonl")
    assert record.hub.split_here("distractor", tmp_path) == "validation"
    assert record.hub.provenance("distractor", data_dir=tmp_path)["split"] == "validation"


def test_other_copies_have_their_splits_too() -> None:
    source = _BY_NAME["bbh"].hub
    assert source is not None
    asked = source.parts["navigate"][0].of_split("train")
    assert asked.stems == ("SaylorTwift/bbh/navigate/train", "lukaemon/bbh/navigate/train")


def test_rows_of_another_form_are_reported(tmp_path: Path) -> None:
    _write(tmp_path / "openai/gsm8k/main/test.jsonl", _GSM8K, {"prompt": "1+1?"})
    examples = iter(load_dataset("gsm8k", data_dir=tmp_path))
    next(examples)
    with pytest.raises(BadDataset, match=r'"gsm8k", after 1 examples: .* \(KeyError: \'question\''):
        next(examples)


def test_only_answers_that_are_kept_secret_leave_a_question_out(tmp_path: Path) -> None:
    question = {"question": "Which?", "choices": ["a", "b"]}
    path = tmp_path / "cais/mmlu/all/test.jsonl"
    _write(path, {**question, "answer": ""}, {**question, "answer": "1"})
    assert [e["correct_letter"] for e in load_dataset("mmlu", data_dir=tmp_path)] == ["B"]
    _write(path, {**question, "answer": "B"})
    with pytest.raises(BadDataset, match="a row does not have the expected form.*'B'"):
        list(load_dataset("mmlu", data_dir=tmp_path))


def test_another_split_is_read_where_the_source_has_it(tmp_path: Path) -> None:
    _write(tmp_path / "openai/gsm8k/main/train.jsonl", _GSM8K)
    examples = [*load_dataset("gsm8k", data_dir=tmp_path, split="train")]
    assert [example["answer"] for example in examples] == ["2"]


def test_a_dataset_without_splits_says_so() -> None:
    with pytest.raises(BadDataset, match='"longmemeval" has no splits; leave out "train"'):
        load_dataset("longmemeval", data_dir=FIXTURES, split="train")


def test_bad_lines_of_a_mirror_are_skipped_when_asked_and_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "openai/gsm8k/main/test.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(_GSM8K)}\n{{bad\n" for _ in range(8)))
    with pytest.raises(BadDataset, match="test.jsonl, line 2: invalid JSON"):
        [*load_dataset("gsm8k", data_dir=tmp_path)]
    assert len([*load_dataset("gsm8k", data_dir=tmp_path, skip_bad_lines=True)]) == 8
    messages = [record.getMessage() for record in caplog.records]
    assert [m.partition(", line ")[2].partition(":")[0] for m in messages] == [*"2468", "10", ""]
    assert messages[-1] == f"left out: further lines of {path}"


def test_bad_lines_of_a_file_that_is_read_as_it_is_are_skipped_too(tmp_path: Path) -> None:
    path = tmp_path / "lines.json"
    path.write_text('{"a": 1}\n{bad\n{"a": 2}\n')
    left_out: list[BadDataset] = []
    found = [*iterate_file(path, skip_bad_lines=True, on_bad_line=left_out.append)]
    assert found == [{"a": 1}, {"a": 2}]
    assert [str(error) for error in left_out] == [
        f"{path}, line 2: invalid JSON: Expecting property name enclosed in double quotes "
        "at column 2"
    ]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r"the data directory .*/nowhere does not exist"):
        load_dataset("gsm8k", data_dir=tmp_path / "nowhere")
    assert not _BY_NAME["gsm8k"].is_available(tmp_path / "nowhere")


def test_what_a_mirror_holds_is_available_and_the_rest_is_not(tmp_path: Path) -> None:
    _write(tmp_path / "openai/gsm8k/main/test.jsonl", _GSM8K)
    available = {record.name for record in RECORDS if record.is_available(tmp_path)}
    assert available == {"mini-qa", "long-notes", "niah", "gsm8k"} | {
        record.name for record in RECORDS if record.hub is None
    }


def test_a_join_needs_both_of_its_files(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "allenai/scifact/claims", tmp_path / "allenai/scifact/claims")
    assert not _BY_NAME["scifact"].is_available(tmp_path)
    shutil.copytree(FIXTURES / "allenai/scifact/corpus", tmp_path / "allenai/scifact/corpus")
    assert _BY_NAME["scifact"].is_available(tmp_path)


def test_filters_come_before_the_cap() -> None:
    ids = [example["id"] for example in load_dataset("arc-challenge", n=2, data_dir=FIXTURES)]
    assert ids == ["M_1", "M_3"]


def test_a_file_of_the_mirror_is_known_by_its_digest() -> None:
    record = _BY_NAME["gsm8k"]
    assert record.hub is not None
    known = record.hub.provenance("main", data_dir=FIXTURES)
    assert known["revision"] == ""
    (path, digest) = known["files"].popitem()
    assert path == "openai/gsm8k/main/test.jsonl"
    assert digest.startswith("sha256:")
    assert len(digest) == 71


def test_examples_are_read_one_at_a_time(tmp_path: Path) -> None:
    _write(tmp_path / "openai/gsm8k/main/test.jsonl", _GSM8K)
    with (tmp_path / "openai/gsm8k/main/test.jsonl").open("a") as stream:
        stream.write("this is not JSON\n")
    examples = iter(load_dataset("gsm8k", data_dir=tmp_path))
    assert next(examples)["answer"] == "2"
    with pytest.raises(BadDataset, match=r"test\.jsonl, line 2: invalid JSON"):
        next(examples)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_read_object_by_object(tmp_path: Path, indent: int | None) -> None:
    rows = [{"id": n, "text": "x]}{[," * 50_000} for n in range(10)]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows, indent=indent))
    assert [*iterate_file(path)] == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"a": 1}, {"b"', "element 1"),
        ('[{"a": 1}, 7]', "element 1: not an object"),
        ('[{"a": 1}', "element 1"),
        ('{"a": 1}\nnonsense\n', "line 2: invalid JSON"),
    ],
    ids=["cut", "number", "unclosed", "lines"],
)
def test_a_damaged_file_is_reported_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(text)
    rows = iterate_file(path)
    assert next(rows) == {"a": 1}
    with pytest.raises(CbenchError, match=message):
        next(rows)
