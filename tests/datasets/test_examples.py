"""The embedded datasets, the record that describes a dataset, and what every example must have."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench_server.datasets import (
    DEFAULT_REFERENCE_FIELDS,
    RECORDS,
    DatasetRecord,
    IdLedger,
    check_example,
)
from cbench_server.errors import BadDataset, NotFound

_REPOSITORY = Path(__file__).parents[2]
_BY_NAME = {record.name: record for record in RECORDS}
_EMBEDDED = [record for record in RECORDS if record.embedded]
_WITHOUT_GOLD = {"mini-instructions", "mini-chat", "mini-memory", "long-memory"}
_ASKED = {"mini-qa", "long-notes", "mini-summaries", "mini-choice", "mini-nli"}
_MIXED = {"mini-chat"}
_MAY_BE_SEEN = {"question", "kind", "category", "choices", "entry_point", "turns", "multi_turn"}


def normalise(text: str) -> str:
    text = re.sub(r"[!-/:-@\[-`{-~]", "", text.lower())
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def letters(config: str, count: int = 2) -> Any:
    return iter([{"id": config + letter, "context": ""} for letter in "abc"[:count]])


@pytest.mark.parametrize("record", _EMBEDDED, ids=lambda record: record.name)
def test_every_embedded_example_is_valid_and_complete(record: DatasetRecord) -> None:
    examples = list(record.examples())
    assert len(examples) == record.size
    # The examples of a conversation are the questions about it.
    assert sum(len(example.get("qa_pairs", [example])) for example in examples) >= 30
    seen = IdLedger()
    for position, example in enumerate(examples):
        assert check_example(example, position, record.name, seen) == example["id"]
        assert example["context"].strip()
        if record.name not in _WITHOUT_GOLD:
            assert example["answer"].strip()
        assert example.get("answers", [example.get("answer")])[0] == example.get("answer")


def test_the_records_have_different_names_and_say_what_they_are() -> None:
    assert len(_BY_NAME) == len(RECORDS)
    for record in RECORDS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", record.name)
        assert record.description.endswith(".")
        assert record.licence


def test_long_notes_holds_each_answer_once_and_among_alternatives_only_there() -> None:
    for example in _BY_NAME["long-notes"].examples():
        context = example["context"]
        assert context.count(example["answer"]) == 1, example["id"]
        for reference in example.get("answers", [example["answer"]]):
            assert normalise(context).count(normalise(reference)) <= 1, example["id"]


def test_long_notes_are_long_and_of_many_kinds_with_answers_everywhere() -> None:
    examples = list(_BY_NAME["long-notes"].examples())
    thirds = Counter(e["context"].index(e["answer"]) * 3 // len(e["context"]) for e in examples)
    assert all(600 <= len(example["context"].split()) <= 1500 for example in examples)
    assert len({example["kind"] for example in examples}) >= 8
    assert min(thirds[third] for third in range(3)) >= len(examples) // 4


def test_long_notes_is_what_its_script_writes(tmp_path: Path) -> None:
    written = tmp_path / "long-notes.jsonl"
    script = _REPOSITORY / "cbench_server/datasets/embedded/long_notes/make.py"
    subprocess.run([sys.executable, script, "--to", written], check=True)
    embedded = _REPOSITORY / "cbench_server" / "datasets" / "embedded" / "long-notes.jsonl"
    assert written.read_bytes() == embedded.read_bytes()


def test_an_embedded_dataset_withholds_its_answers_and_nothing_a_system_needs() -> None:
    for record in _EMBEDDED:
        needed = {"id", "context"} | ({"turns"} if record.name.endswith("-memory") else set())
        for example in record.examples():
            visible = set(example) - set(record.reference_fields)
            assert needed <= visible <= needed | _MAY_BE_SEEN
            # What is asked stands in the context where it is not a question of its own.
            assert ("question" in visible) is (record.name in _ASKED) or record.name in _MIXED


def test_the_default_reference_fields_cover_what_evaluators_compare_with() -> None:
    named_by_the_contract = {
        "answer",
        "answers",
        "correct_letter",
        "test",
        "test_list",
        "canonical_solution",
        "reasoning",
    }
    assert named_by_the_contract <= set(DEFAULT_REFERENCE_FIELDS)
    needed_by_systems = {
        "id",
        "dataset",
        "context",
        "question",
        "choices",
        "turns",
        "multi_turn",
        "tools",
        "prompt",
        "entry_point",
        "category",
        "repo",
        "base_commit",
    }
    assert not needed_by_systems & set(DEFAULT_REFERENCE_FIELDS)
    assert len(set(DEFAULT_REFERENCE_FIELDS)) == len(DEFAULT_REFERENCE_FIELDS)


def test_the_page_about_datasets_lists_every_reference_field() -> None:
    page = (_REPOSITORY / "docs" / "datasets.md").read_text(encoding="utf-8")
    listed = page.split("these are:")[1].split("Names that")[0]
    assert tuple(re.findall("`(.+?)`", listed)) == DEFAULT_REFERENCE_FIELDS


@pytest.mark.parametrize(
    ("configs", "config", "message"),
    [
        ((), "hard", 'dataset "letters" has no configs; leave out ":hard"'),
        (("en", "de"), "fr", 'dataset "letters" has no config "fr"; it has: en, de'),
    ],
    ids=["none", "another"],
)
def test_an_unknown_config_is_refused(configs: tuple[str, ...], config: str, message: str) -> None:
    record = DatasetRecord(name="letters", load=letters, description="Letters.", configs=configs)
    with pytest.raises(NotFound) as caught:
        record.examples(config)
    assert str(caught.value) == message


def test_a_config_and_options_reach_the_loader_and_the_default_config_stands_in() -> None:
    record = DatasetRecord(
        name="letters",
        load=letters,
        description="Letters.",
        configs=("en-", "de-"),
        default_config="en-",
    )
    assert [example["id"] for example in record.examples()] == ["en-a", "en-b"]
    assert [example["id"] for example in record.examples("de-", count=1)] == ["de-a"]


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (
            {"id": "x", "question": "why?"},
            'dataset "mine", position 7: "context" is missing (the example has: id, question); '
            "every example needs a context. Where it has another name, map it: context=NAME",
        ),
        (
            {},
            'dataset "mine", position 7: "context" is missing (the example has: nothing); '
            "every example needs a context. Where it has another name, map it: context=NAME",
        ),
        (
            {"id": "x", "context": None},
            'dataset "mine", position 7: "context" is of type null; it must be a string',
        ),
        (
            {"id": "x", "context": ["a"], "turns": []},
            'dataset "mine", position 7: "context" is of type list; it must be a string',
        ),
        (
            {"id": True, "context": "c"},
            'dataset "mine", position 7: the id True is of type bool; '
            "an id is a string or an integer",
        ),
        (
            {"id": 1.0, "context": "c"},
            'dataset "mine", position 7: the id 1.0 is of type float; '
            "an id is a string or an integer",
        ),
        (
            {"id": "taken", "context": "c"},
            'dataset "mine": positions 2 and 7 have the same id "taken"; '
            "ids must be unique in a dataset",
        ),
        (
            {"context": "c"},
            'dataset "mine": positions 4 and 7 have the same id 7 (the second has no id, so its '
            "position serves as one); ids must be unique in a dataset",
        ),
    ],
    ids=[
        "no-context",
        "empty",
        "null-context",
        "turns-need-context",
        "bool-id",
        "float-id",
        "duplicate",
        "position-taken",
    ],
)
def test_an_example_a_run_cannot_use_is_named(example: dict[str, Any], message: str) -> None:
    seen = IdLedger()
    seen.add("taken", 2)
    seen.add(7, 4)
    with pytest.raises(BadDataset) as caught:
        check_example(example, 7, "mine", seen)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("example", "example_id"),
    [
        ({"id": "a", "context": ""}, "a"),
        ({"id": "", "context": "c"}, ""),
        ({"id": 2**80, "context": "c"}, 2**80),
        ({"context": "c"}, 5),
        ({"id": None, "context": "c"}, 5),
    ],
    ids=["text", "empty-text", "large-integer", "missing", "null"],
)
def test_an_id_keeps_its_type_and_the_position_stands_in(
    example: dict[str, Any], example_id: str | int
) -> None:
    found = check_example(example, 5, "mine", IdLedger())
    assert found == example_id
    assert type(found) is type(example_id)


def test_an_integer_and_its_text_are_different_ids() -> None:
    seen = IdLedger()
    assert seen.add(1, 0) is None
    assert seen.add("1", 1) is None
    assert seen.add("i1", 2) is None
    assert seen.add(1, 3) == 0
    assert seen.add("1", 4) == 1


@given(st.lists(st.integers() | st.text(st.characters())))
def test_the_ledger_finds_the_first_position_of_every_repeated_id(ids: list[str | int]) -> None:
    seen = IdLedger()
    first: dict[tuple[type, str | int], int] = {}
    for position, example_id in enumerate(ids):
        expected = first.setdefault((type(example_id), example_id), position)
        assert seen.add(example_id, position) == (None if expected == position else expected)
