"""`cbench run --controls matched`: is a compressor better than cutting to the same length?"""

import json
from pathlib import Path
from typing import Any

import pytest

from cbench_server.registry import load_dataset
from cbench_server.tokens import count_tokens
from tests.cli.conftest import Cbench, Serve, complaint, strict

_FILLER = "Nothing else was noted on that day in the harbour, and the clerk went home early. "


def example(number: int) -> dict[str, Any]:
    fact = f"The code of door {number} is zebra{number}. "
    place = number % 5
    context = _FILLER * place + fact + _FILLER * (4 - place)
    return {"id": number, "context": context, "question": "code?", "answer": f"zebra{number}"}


@pytest.fixture
def run(cbench: Cbench, serve: Serve, tmp_path: Path) -> dict[str, Any]:
    doors = tmp_path / "doors.jsonl"
    doors.write_text("".join(f"{json.dumps(example(number))}\n" for number in range(30)))
    finished = cbench(
        "run",
        *("--system", serve("selecting"), "--builtin", "identity", "--controls", "matched"),
        *("--dataset", doors, "--output", "json"),
    )
    assert finished.returncode == 0, finished.stderr
    return strict(finished.stdout)


def _notes(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [note for note in run["notes"] if note["code"] == "MATCHED_CONTROLS"]


def test_controls_are_cut_to_what_the_system_left(run: dict[str, Any]) -> None:
    lengths: dict[str, dict[int, set[int]]] = {}
    for row in run["rows"]:
        if "failure" in row:
            assert (row["system"], row["index"]) == ("selecting", 7)
            continue
        by_example = lengths.setdefault(row["system"], {})
        by_example.setdefault(row["index"], set()).add(row["context_tokens_out"])
    own = lengths["selecting"]
    for cut in ("truncate-tail", "truncate-head", "random-drop"):
        for index, kept in lengths[f"{cut}@selecting"].items():
            # A row whose system failed is cut to its usual share.
            (wanted,) = own.get(index, own[0])
            assert all(wanted - 6 <= length <= wanted for length in kept), (cut, index)
    assert len(lengths["truncate-tail@selecting"]) == 30
    assert not any(name.endswith("@identity") for name in lengths)
    repeats = [row["repeat"] for row in run["rows"] if row["system"] == "random-drop@selecting"]
    assert sorted(set(repeats)) == [0, 1, 2, 3, 4]
    assert run["total_rows"] == run["completed_rows"] == 30 * (2 + 2 + 5)


def test_the_table_says_whether_the_system_beats_them_all(
    run: dict[str, Any], cbench: Cbench
) -> None:
    (note,) = _notes(run)
    said = "selecting is better than truncating, or dropping words, to the same length."
    assert note["text"] == said
    shown = cbench("show", "last").stdout
    assert said in shown
    assert "pass_at" not in shown


def test_a_blind_cut_is_not_called_better(cbench: Cbench, serve: Serve) -> None:
    finished = cbench(
        "run",
        *("--system", serve("halving"), "--controls", "matched", "--dataset", "mini-qa"),
        *("--output", "json"),
    )
    (note,) = _notes(strict(finished.stdout))
    assert "is not shown to be better than cutting to the same length" in note["text"]


def test_built_in_systems_are_held_to_cuts_where_nothing_else_is_tested(cbench: Cbench) -> None:
    names = ("identity", "truncate-head", "lead", "random-drop")
    finished = cbench(
        *("run", *(part for name in names for part in ("--builtin", name))),
        *("--option", "lead.n=1", "--controls", "matched", "--dataset", "mini-qa", "-n", 12),
        *("--output", "json"),
    )
    run = strict(finished.stdout)
    # What cuts as a control does is not held against itself.
    assert run["systems"][4:] == [
        "truncate-tail@truncate-head",
        "random-drop@truncate-head",
        "truncate-head@lead",
        "random-drop@lead",
        "truncate-tail@random-drop",
        "truncate-head@random-drop",
    ]
    said = {note["system"]: note["text"] for note in _notes(run)}
    assert [*said] == ["truncate-head", "lead", "random-drop"]
    own = " It is not held against truncate-tail, which at its own length is what it does."
    assert said["lead"].endswith(own)
    (none,) = [note for note in run["notes"] if note["code"] == "NO_CONTROLS"]
    assert (none["system"], none["text"]) == (
        "identity",
        "identity shortened nothing, so there is no length to cut to: it has no matched controls.",
    )


def test_cuts_of_a_summary_are_answers_too(cbench: Cbench) -> None:
    finished = cbench(
        *("run", "--builtin", "lead", "--controls", "matched", "--dataset", "mini-summaries"),
        *("-n", 12, "--output", "json"),
    )
    run = strict(finished.stdout)
    assert {row["system"] for row in run["rows"]} == {
        "lead",
        "truncate-head@lead",
        "random-drop@lead",
    }
    assert all("rouge_l_f1" in row["scores"] for row in run["rows"])
    (note,) = _notes(run)
    assert note["text"].startswith("lead is ")
    assert run["summary"]["lead"]["context_compression"] > 0.5


def test_a_system_that_returns_no_context_has_no_controls_and_it_is_said_why(
    cbench: Cbench, tmp_path: Path
) -> None:
    answers = tmp_path / "answers.jsonl"
    examples = list(load_dataset("mini-qa"))[:3]
    lines = [{"id": each["id"], "response": "?"} for each in examples]
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    finished = cbench(
        *("run", "--predictions", answers, "--name", "said", "--builtin", "truncate-tail"),
        *("--controls", "matched", "--dataset", "mini-qa", "-n", 3, "--output", "json"),
    )
    run = strict(finished.stdout)
    assert run["systems"] == ["said", "truncate-tail"]
    notes = [note["text"] for note in run["notes"] if note["code"] == "NO_CONTROLS"]
    assert notes == [
        "said does not tell what it left of a context, so there is no length to cut to: it has no "
        "matched controls."
    ]


def test_a_memory_run_has_no_such_controls(cbench: Cbench) -> None:
    finished = cbench(
        "memory", "run", "--builtin", "bm25", "--dataset", "mini-memory", "--controls", "matched"
    )
    assert finished.returncode == 2
    assert "--controls" in complaint(finished)


def test_summaries_are_held_against_the_beginning_of_the_text(
    cbench: Cbench, tmp_path: Path
) -> None:
    answers = tmp_path / "answers.jsonl"
    examples = list(load_dataset("mini-summaries"))[:12]
    # As good as can be, and one missing.
    lines = [{"id": each["id"], "response": each["answer"]} for each in examples[1:]]
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    finished = cbench(
        *("run", "--predictions", answers, "--name", "written", "--controls", "matched"),
        *("--dataset", "mini-summaries", "--dataset", "mini-qa", "-n", 12, "--output", "json"),
    )
    assert finished.returncode == 0, finished.stderr
    run = strict(finished.stdout)
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in run["rows"]:
        rows.setdefault(row["system"], []).append(row)
    assert {name: len(found) for name, found in rows.items()} == {
        "written": 24,
        "lead@written": 12,
        "lead-3": 12,
    }
    for row in rows["lead@written"][1:]:
        assert row["dataset"] == "mini-summaries"
        example = examples[row["index"]]
        wanted = count_tokens(example["answer"])
        assert wanted - 6 <= row["output_tokens"] - count_tokens(example["id"]) <= wanted
    (note,) = _notes(run)
    assert note["text"] == (
        "written is better than the beginning of the text, also at the same length."
    )
    # What a control saves follows from the system that it was cut to.
    unknown = [each["system"] for each in run["notes"] if each["code"] == "COMPRESSION_UNKNOWN"]
    assert unknown == ["written"]


@pytest.mark.parametrize(("option", "added"), [((), False), (("--option", "lead.n=2"), True)])
def test_three_sentences_are_a_baseline_beside_a_lead_of_another_length(
    cbench: Cbench, tmp_path: Path, option: tuple[str, ...], added: bool
) -> None:
    answers = tmp_path / "answers.jsonl"
    lines = [{"id": each["id"], "response": "word"} for each in load_dataset("mini-summaries")]
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    finished = cbench(
        *("run", "--predictions", answers, "--builtin", "lead", *option, "--controls", "matched"),
        *("--dataset", "mini-summaries", "-n", 5, "--output", "json"),
    )
    assert ("lead-3" in strict(finished.stdout)["systems"]) is added


def test_the_beginning_of_a_text_is_a_baseline_of_summaries(cbench: Cbench) -> None:
    finished = cbench(
        *("run", "--builtin", "lead", "--option", "lead.n=2", "--dataset", "mini-summaries"),
        *("-n", 5, "--output", "json"),
    )
    run = strict(finished.stdout)
    assert all(row["scores"]["rouge_l_f1"] > 0 for row in run["rows"])
