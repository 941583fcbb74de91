"""Any dataset: mappings from other columns, names of the hub, aliases, and conversations."""

import json
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_client import BenchClient, Refused
from cbench_client.messages.convert import value_from_proto
from cbench_server import evaluate
from cbench_server.datasets.mapping import mapped, read_path
from cbench_server.errors import BadDataset, InvalidSpec
from cbench_server.registry import load_dataset, registry

from .test_records import FIXTURES
from .test_runs import _run, cbench, client

__all__ = ["cbench", "client"]

_ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "passage": "Rome is old.",
        "gold": {"text": ["old", "very old"], "odd name": 1},
        "a.b": "dotted",
        "x[0]": "in brackets",
        "parts": [{"t": "one"}, {"t": "two"}],
    },
    {"passage": "Oslo is new.", "gold": {"text": ["new"]}, "parts": []},
]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("passage", "Rome is old."),
        ("gold.text[0]", "old"),
        ("gold.text[-1]", "very old"),
        ("gold.text", ["old", "very old"]),
        ('gold["odd name"]', 1),
        ("gold['odd name']", 1),
        ("parts[*].t", ["one", "two"]),
        ('["a.b"]', "dotted"),
        ('["x[0]"]', "in brackets"),
        ("parts[1].t", "two"),
    ],
)
def test_a_path_leads_to_its_value(path: str, found: object) -> None:
    first = next(mapped(iter(_ROWS), {"value": path}, "mine"))
    assert first == {"id": "a", "value": found}


def test_several_texts_of_a_context_are_joined_and_what_is_missing_is_left_out() -> None:
    first, second = mapped(iter(_ROWS), {"context": "parts[*].t", "answer": "gold.text[1]"}, "mine")
    assert first == {"id": "a", "context": "one\n\ntwo", "answer": "very old"}
    assert second == {}


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[x]", "__import__('os')", "a.b()", "a b.c d"])
def test_what_is_no_path_is_refused_before_a_row_is_read(path: str) -> None:
    def unread() -> Any:
        raise AssertionError("a row was read")
        yield

    with pytest.raises(InvalidSpec, match="is not a valid path|is empty"):
        mapped(unread(), {"context": path}, "mine")


@given(st.text())
def test_a_path_is_read_or_refused_whatever_it_says(text: str) -> None:
    with suppress(InvalidSpec):
        assert read_path(text)


def test_a_column_that_is_not_there_is_answered_with_the_columns() -> None:
    with pytest.raises(BadDataset) as caught:
        next(mapped(iter(_ROWS), {"context": "passage", "answer": "gold.txt"}, "mine"))
    assert str(caught.value) == (
        'dataset "mine": none of the first 2 rows has "gold.txt", which should become "answer". '
        'The columns are: id, passage, gold (text, odd name), ["a.b"], ["x[0]"], parts (t).'
    )


def test_a_dataset_of_the_hub_is_read_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "org/some-set/hard"
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _ROWS))
    assert [*load_dataset("hf:org/some-set:hard", data_dir=tmp_path)] == _ROWS
    record = registry.dataset("hf:org/some-set")
    assert record.hub is not None
    assert record.hub.split_here("hard", tmp_path) == "test"
    with pytest.raises(BadDataset, match="is not a valid split"):
        record.examples("hard", data_dir=tmp_path, split="../../../secret")


@pytest.mark.parametrize("name", ["hf:name", "hf:../x", "hf:a/b/c", "hf:"])
def test_a_name_that_is_none_of_the_hub_is_refused(name: str) -> None:
    with pytest.raises(BadDataset, match="write it as hf:org/name"):
        registry.dataset(name)


def test_a_run_maps_what_was_uploaded_and_records_how(client: BenchClient) -> None:
    digest, _ = client.upload(_ROWS)
    mapping = {"context": "passage", "answer": "gold.text[0]"}
    dataset = {"name": "mine", "upload": digest, "mapping": mapping}
    run, ids = _run(client, dataset)
    assert ids == ["a", ""]
    (described,) = value_from_proto(run.config["datasets"])
    assert described["mapping"] == mapping
    assert [row.scores["answer_retained"] for row in client.rows(run.run_id)] == [1.0, 1.0]


def test_conversations_are_refused_unless_they_are_asked_for_as_transcripts(
    client: BenchClient,
) -> None:
    with pytest.raises(Refused, match="or set as_transcript") as refused:
        _run(client, {"name": "locomo"})
    assert "cbench memory run --dataset locomo" in refused.value.metadata["flags"]
    run, _ = _run(client, {"name": "mini-memory", "as_transcript": True, "max_examples": 3})
    rows = [*client.rows(run.run_id)]
    assert len(rows) == 3
    (described,) = value_from_proto(run.config["datasets"])
    assert {"evidence", "is_abstention", "question_type"} <= {*described["withheld_fields"]}


_LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a red kite"},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "I moved to Oslo."},
        ],
    },
    "qa": [
        {
            "question": "Where did Ben move?",
            "answer": "Oslo",
            "evidence": ["D:1:02"],
            "category": 4,
        },
        {"question": "Who is Carl?", "adversarial_answer": "a vet", "category": 5},
    ],
}


def test_the_files_of_locomo_are_read_as_they_are_published(tmp_path: Path) -> None:
    folder = tmp_path / "snap-research/locomo/data"
    folder.mkdir(parents=True)
    (folder / "locomo10.json").write_text(json.dumps([_LOCOMO]))
    (example,) = load_dataset("locomo", data_dir=tmp_path)
    assert example["id"] == "conv-1"
    assert example["turns"][0] == {
        "role": "user",
        "content": "Look! [shares a photo: a red kite]",
        "speaker": "Ana",
        "time": "2023-05-08T13:56",
        "session": "1",
        "dia_id": "D1:1",
    }
    known, unknown = example["qa_pairs"]
    # However the source writes the name of the turn.
    assert known["evidence"] == ["I moved to Oslo."]
    assert (known["type"], unknown["type"]) == ("single_hop", "adversarial")
    assert unknown["is_abstention"]
    record = registry.dataset("locomo")
    assert record.hub is not None
    files = record.hub.provenance("", data_dir=tmp_path)["files"]
    assert record.protocol_of().data.status == "differs"
    followed = record.protocol_of().in_a_run(
        split="test", part="", primary_score="locomo_f1", files=files
    )
    assert followed.data.status == "same"


@pytest.mark.parametrize("name", ["locomo10.json", "longmemeval_s_cleaned.json"])
def test_a_published_file_is_a_memory_run_of_its_own(
    cbench: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, name: str
) -> None:
    file = FIXTURES / "xiaowu0162/longmemeval-cleaned" / name
    if name.startswith("locomo"):
        file = tmp_path / name
        file.write_text(json.dumps([_LOCOMO]))
    done = cbench(
        *("memory", "run", "--builtin", "last-n", "--dataset", file, "--output", "jsonl"),
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert {row["scores"].get("evidence_recall") for row in rows} == {1.0, None}
    wanted = "locomo_f1" if name.startswith("locomo") else "f1"
    (run,) = json.loads(cbench("runs", "--json").stdout)
    shown = cbench("show", run["run_id"], "--json")
    (dataset,) = json.loads(shown.stdout)["config"]["datasets"]
    assert dataset["primary_score"] == wanted
    assert dataset["protocol"]["axes"]["data"]["status"] == "differs"


def test_a_file_of_conversations_is_refused_where_nobody_would_ask(
    cbench: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    file = tmp_path / "locomo10.json"
    file.write_text(json.dumps([_LOCOMO]))
    run = ("run", "--builtin", "identity", "--dataset", file, "--output", "jsonl")
    refused = cbench(*run)
    assert refused.returncode == 2, refused.stdout
    assert "cbench memory run --dataset FILE, or add --as-transcript" in refused.stderr
    asked = cbench(*run, "--as-transcript")
    assert asked.returncode == 0, asked.stderr
    rows = [json.loads(line) for line in asked.stdout.splitlines()]
    assert len(rows) == len(_LOCOMO["qa"])
    assert {row["scores"].get("evidence_recall") for row in rows} == {1.0, None}


def test_the_flags_map_columns_and_name_files(
    cbench: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.jsonl").write_text(json.dumps(_ROWS[0]) + "\n")
    files = [tmp_path / folder / "mine.jsonl" for folder in ("one", "two")]
    run = ("run", "--builtin", "identity", "--output", "jsonl", "--dataset", files[0])
    twice = cbench(*run, "--dataset", files[1])
    assert "--dataset NAME=FILE" in twice.stderr
    flags = ("--map", "context=passage,answer=gold.text[0]")
    done = cbench(*run, "--dataset", f"other={files[1]}", *flags)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["dataset"] for row in rows} == {"mine", "other"}
    assert {row["scores"]["answer_retained"] for row in rows} == {1.0}
    again = cbench(*run, "--map", "context=passage,answer=id,context=gold")
    assert again.returncode == 2
    assert "maps context more than once; give each field one path" in again.stderr
    nothing = cbench(*run, "--map", "contxt=passage")
    assert "--map context=FIELD" in nothing.stderr
    wrong = cbench(*run, "--map", "context=passages")
    columns = 'id, ["a.b"], gold (odd name, text), parts (t), passage, ["x[0]"]'
    assert f"The columns are: {columns}." in wrong.stderr


def test_python_maps_and_records_as_the_command_does(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in _ROWS))
    mapping = {"context": "passage", "answer": "gold.text[0]"}
    dataset = load_dataset(file, mapping=mapping)
    assert [example["answer"] for example in dataset] == ["old", "new"]
    result = evaluate([_Same()], load_dataset("hotpotqa", data_dir=FIXTURES), progress=False)
    (described,) = result.config["datasets"]
    assert described["protocol"]["axes"]["metric"] == {"status": "same", "why": ""}
    assert described["evaluators"][1]["name"] == "hotpotqa"
    (described,) = evaluate([_Same()], dataset, progress=False).config["datasets"]
    assert described["mapping"] == mapping
    with pytest.raises(InvalidSpec, match="is not a valid path"):
        load_dataset(file, mapping={"context": "a..b"})


class _Same:
    name = "same"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return example
