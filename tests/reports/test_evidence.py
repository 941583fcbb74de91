"""Evidence recall as users see it: a table of its own, with a mark for systems that rewrite."""

import json
from pathlib import Path
from typing import Any

import pytest

from cbench_server import evaluate
from cbench_server.cli import main
from cbench_server.evaluators import EvidenceRecall
from tests.fixtures.model_server import ModelServer, clean_environment, server

__all__ = ["clean_environment", "server"]

_ROWS = [
    {
        "id": number,
        "context": f"Ada of house {number} was born in the town of Tarn. It rains there all year.",
        "question": "Where was she born?",
        "answer": "Tarn",
        "evidence": [f"Ada of house {number} was born in the town of Tarn."],
    }
    for number in range(3)
]


class DropsWords:
    name = "drops-words"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        kept = " ".join(example["context"].split()[::2])
        return {**example, "context": kept}


@pytest.fixture
def out(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    file = tmp_path / "rows.jsonl"
    monkeypatch.setenv("CBENCH_HOME", str(tmp_path / "home"))
    file.write_text("".join(json.dumps(row) + "\n" for row in _ROWS))
    flags = ["--builtin", "identity", "--builtin", "truncate-tail", "--builtin", "random-drop"]
    flags += ["--evaluator", "evidence-recall", "--reference-field", "evidence"]
    assert main(["run", *flags, "--dataset", f"mine={file}"]) == 0
    return capsys.readouterr().out


def test_the_table_has_evidence_beside_the_score_and_marks_what_rewrites(out: str) -> None:
    assert "answer_retained" in out
    _, _, after = out.partition("Evidence: the share of what holds the answer")
    table = {line.split()[0]: line for line in after.splitlines()[3:6]}
    assert table["identity"].split()[1] == "1.000"
    assert "verbatim only" not in table["identity"] + table["truncate-tail"]
    assert table["random-drop"].endswith("verbatim only")
    assert "random-drop: evidence recall is verbatim only." in out


def test_json_and_page_say_it_too(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", "--json"]) == 0
    run_id = json.loads(capsys.readouterr().out)[0]["run_id"]
    assert main(["show", run_id, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["summary"]["identity"]["mean_score:evidence_recall"] == 1.0
    marked = [note["system"] for note in shown["notes"] if note["code"] == "VERBATIM_ONLY"]
    assert marked == ["random-drop"]
    page = tmp_path / "page.html"
    assert main(["report", run_id, "-o", str(page)]) == 0
    assert "0.000 (verbatim only)" in page.read_text()


@pytest.mark.parametrize(
    ("score", "is_said"), [("evidence_recall", True), ("answer_recall", False)]
)
def test_comparisons_and_gates_say_it_beside_evidence_only(
    out: str, capsys: pytest.CaptureFixture[str], score: str, is_said: bool
) -> None:
    said = "random-drop: evidence recall is verbatim only."
    main(["compare", "last", "--score-field", score])
    assert (said in capsys.readouterr().out) is is_said
    for system in ("random-drop", "truncate-tail"):
        main(["gate", "last", "--system", system, "--policy", f"{score} at least 0"])
        assert (said in capsys.readouterr().out) is (is_said and system == "random-drop")


def test_evaluate_in_python_says_it_too() -> None:
    result = evaluate([DropsWords()], _ROWS, evaluators=[EvidenceRecall()], progress=False)
    assert [
        note["system"] for note in result.config["notes"] if note["code"] == "VERBATIM_ONLY"
    ] == ["drops-words"]


class Answers:
    """Answers by itself, and passes on the fields it was given but for those it changes."""

    name = "answers"

    def __init__(self, **changed: Any) -> None:
        self.changed = changed

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": "Tarn", **self.changed}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {}),
        ({"context": "It rains."}, {"evidence_recall": 0.0}),
        ({"retrieved": ["It rains."]}, {"evidence_recall": 0.0, "evidence_recall_at_1": 0.0}),
        ({"response": None}, {"evidence_recall": 1.0}),
    ],
    ids=["says nothing", "says what it left", "says what it retrieved", "leaves it to a reader"],
)
def test_who_answers_and_hands_back_the_context_says_nothing_of_what_it_read(
    changed: dict[str, Any], expected: dict[str, float]
) -> None:
    result = evaluate([Answers(**changed)], _ROWS, evaluators=[EvidenceRecall()])
    for row in result.rows:
        assert {name: row.scores.get(name) for name in expected} == expected
        assert ("evidence_recall" in row.scores) is bool(expected)


def test_a_proxy_has_no_evidence_recall_whenever_it_is_scored(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    server: ModelServer,
) -> None:
    file = tmp_path / "rows.jsonl"
    monkeypatch.setenv("CBENCH_HOME", str(tmp_path / "home"))
    # One is too long to be scored at once.
    rows = [*_ROWS, {**_ROWS[0], "id": 9, "context": _ROWS[0]["context"] + " It rains." * 9_000}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    server.say("Tarn")
    flags = ["--proxy", server.url, "--model", "m", "--reference-field", "evidence"]
    flags += ["--evaluator", "answer-quality", "--evaluator", "evidence-recall"]
    assert main(["run", *flags, "--dataset", f"mine={file}"]) == 0
    assert "Evidence" not in capsys.readouterr().out
    assert main(["rescore", "last"]) == 0
    assert "Evidence" not in capsys.readouterr().out
