"""`evaluate()` with prompts, labels, errata and files as benchmarks publish them."""

import json
from pathlib import Path
from typing import Any

import pytest

from cbench_server import evaluate, evaluate_memory
from cbench_server.datasets.prompts.library import prompt_for
from cbench_server.errors import BadDataset, InvalidSpec
from cbench_server.evaluators import AnswerQuality, LLMJudge, MemoryJudge
from cbench_server.registry import load_dataset
from cbench_server.systems.memories import Bm25, FullHistory
from cbench_server.systems.openai_proxy import OpenAIProxy
from tests.fixtures.model_server import ModelServer, clean_environment, server
from tests.fixtures.scripted_judges import exact, script

__all__ = ["clean_environment", "server"]


def examples(count: int = 4) -> list[dict[str, Any]]:
    return [
        {"id": n, "context": f"The word is w{n}.", "question": f"Which is {n}?", "answer": f"w{n}"}
        for n in range(count)
    ]


class Fixed:
    name = "fixed"
    version = "1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {**example, "response": "w0"}


def sent(server: ModelServer) -> list[Any]:
    return [request["messages"] for request in server.requests]


def test_a_template_a_system_prompt_and_examples_are_sent(
    server: ModelServer, tmp_path: Path
) -> None:
    server.say("w0")
    template = "{examples}\nRead: {context}\nSay: {question}\n[[example]]\n{question} -> {answer}"
    file = tmp_path / "prompt.txt"
    file.write_text(template)
    for prompt in (template, file):
        server.requests.clear()
        result = evaluate(
            [OpenAIProxy(server.url, name="m")],
            examples(),
            max_examples=1,
            progress=False,
            prompt=prompt,
            system_prompt="Be brief.",
            asked_again=0,
            few_shot=0,
        )
        [messages] = sent(server)
        assert messages[0] == {"role": "system", "content": "Be brief."}
        assert messages[1]["content"] == "Read: The word is w0.\nSay: Which is 0?"
        told = result.config["prompts"]["datasets"][""]
        assert (told["origin"], told["few_shot"]) == ("file", 0)
    server.requests.clear()
    evaluate(
        [OpenAIProxy(server.url, name="m")],
        examples(),
        progress=False,
        prompt=template,
        asked_again=0,
        few_shot=2,
    )
    for messages in sent(server):
        shown, _, asked = messages[-1]["content"].rpartition("Say: ")
        assert shown.count(" -> w") == 2
        assert f"{asked} -> w" not in shown


def test_a_plain_prompt_and_another_template_are_other_answers(
    server: ModelServer, tmp_path: Path
) -> None:
    server.say("w0")

    def asked(**prompt: Any) -> int:
        server.requests.clear()
        proxy = OpenAIProxy(server.url, name="m")
        options: dict[str, Any] = {"cache_dir": tmp_path, "progress": False, "asked_again": 0}
        evaluate([proxy], examples(2), [AnswerQuality()], **options, **prompt)
        return len(server.requests)

    assert [asked(prompt="plain"), asked(prompt="plain"), asked(prompt="{context}"), asked()] == [
        2,
        0,
        2,
        2,
    ]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("my-prompt.txt", "is no template"),
        ("{context} {answer}", 'names "answer", which is withheld'),
        ("{context} {nonsense}", 'no field "nonsense"'),
    ],
)
def test_a_prompt_that_cannot_be_meant_is_refused(prompt: str, message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        evaluate([Fixed()], examples(), progress=False, prompt=prompt)


def test_the_record_says_what_was_told_and_how_far_it_is_official(tmp_path: Path) -> None:
    class Told(Fixed):
        def process(self, example: dict[str, Any], instruction: str = "") -> dict[str, Any]:
            return {**example, "response": instruction}

    for prompt, status in (("{question}", "same"), (None, "same"), ("{question}!", "differs")):
        rows = [{"key": 1, "prompt": "Say hi.", "instruction_id_list": [], "kwargs": []}]
        config = evaluate([Told()], ifeval(tmp_path, rows), progress=False, prompt=prompt).config
        assert config["datasets"][0]["protocol"]["axes"]["prompt"]["status"] == status
        assert config["prompts"]["told"] == {"fixed": "instruction"}


def ifeval(folder: Path, rows: list[dict[str, Any]]) -> Any:
    file = folder / "google" / "IFEval" / "default" / "train.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(map(json.dumps, rows)))
    return load_dataset("ifeval", data_dir=str(folder))


# Labels and errata.


def test_errata_are_scored_beside_what_is_published() -> None:
    errata = [
        {"example_id": 1, "action": "replace", "answers": ["w0"], "reason": "misread"},
        {"example_id": 2, "action": "exclude"},
    ]
    result = evaluate([Fixed()], examples(), [AnswerQuality()], progress=False, errata=errata)
    values = result.summary["fixed"]
    assert (values["mean_score"], values["with_errata"]) == (0.25, pytest.approx(2 / 3))
    assert result.config["judging"]["errata"]["ceilings"] == {"": {"": 0.5}}
    assert [row.score for row in result.rows] == [1.0, 0.0, 0.0, 0.0]
    assert any(note["code"] == "ERRATA" for note in result.config["notes"])


def test_the_ceiling_of_a_dataset_is_held_against_its_own_rows(tmp_path: Path) -> None:
    files = [tmp_path / "right.jsonl", tmp_path / "wrong.jsonl"]
    for file, answer in zip(files, ("w0", "x"), strict=True):
        rows = [{**each, "answer": answer, "category": "c"} for each in examples()]
        file.write_text("\n".join(map(json.dumps, rows)))
    errata = [{"dataset": "right", "example_id": 1, "action": "exclude"}]
    options: dict[str, Any] = {"group_by": ["category"], "progress": False, "errata": errata}
    result = evaluate([Fixed()], files, [AnswerQuality()], **options)
    assert result.config["judging"]["errata"]["ceilings"]["right"] == {"": 0.75, "c": 0.75}
    above = [note for note in result.config["notes"] if note["code"] == "ABOVE_CEILING"]
    assert {(note["dataset"], note["system"]) for note in above} == {("right", "fixed")}
    assert "scores 1.000 on c, above the ceiling of 0.750" in above[1]["text"]


def test_errata_of_examples_that_are_left_out_are_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "words.jsonl"
    file.write_text("\n".join(map(json.dumps, examples())))
    errata = tmp_path / "errata.jsonl"
    errata.write_text('{"dataset": "words", "example_id": 3, "action": "exclude"}\n')
    options: dict[str, Any] = {"max_examples": 2, "progress": False, "errata": errata}
    assert evaluate([Fixed()], file, **options).summary["fixed"]["with_errata"] == 0.5
    errata.write_text('{"dataset": "words", "example_id": 9, "action": "exclude"}\n')
    with pytest.raises(BadDataset, match="has no such example"):
        evaluate([Fixed()], file, **options)


def test_labels_of_people_give_the_true_rate(server: ModelServer) -> None:
    script(server, exact)
    labels = [{"example_id": n, "verdict": "yes" if n < 2 else "no"} for n in range(4)]
    judge = MemoryJudge(base_url=server.url)
    result = evaluate([Fixed()], examples(), [judge], progress=False, labels=labels)
    values = result.summary["fixed"]
    assert (values["mean_score"], values["labelled_rate"]) == (0.25, pytest.approx(0.5))
    assert any("and people agree on 75%" in note["text"] for note in result.config["notes"])
    part = result.filter(dataset="")
    assert part.summary["fixed"]["labelled_rate"] == pytest.approx(0.5)


def test_labels_need_a_judge_and_rows() -> None:
    labels = [{"example_id": 1, "verdict": "yes"}]
    with pytest.raises(InvalidSpec, match="labels are set beside the verdicts of a judge"):
        evaluate([Fixed()], examples(), progress=False, labels=labels)
    judge = LLMJudge(base_url="http://127.0.0.1:9")
    with pytest.raises(BadDataset, match="labels are about no row"):
        evaluate([Fixed()], examples(1), [judge], progress=False, labels=labels)


# Files.


def locomo_file(folder: Path) -> Path:
    said = [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a red bike."},
        {"speaker": "Bob", "dia_id": "D1:2", "text": "Nice!"},
    ]
    talk = {"speaker_a": "Ann", "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": said}
    asked = {"question": "What did Ann buy?", "answer": "bike", "category": 4, "evidence": ["D1:1"]}
    file = folder / "talks.json"
    file.write_text(json.dumps([{"sample_id": "c1", "conversation": talk, "qa": [asked]}]))
    return file


def test_a_published_file_is_scored_and_worded_as_its_benchmark(tmp_path: Path) -> None:
    class Told(FullHistory):
        name = "told"

        def query(self, question: str, instruction: str = "") -> Any:
            return instruction

    result = evaluate_memory([Told], locomo_file(tmp_path), progress=False)
    [row] = result.rows
    assert (row.primary_score, row.dataset) == ("locomo_f1", "talks")
    [described] = result.config["datasets"]
    assert described["protocol"]["follows"].startswith("snap-research/locomo")
    assert described["protocol"]["axes"]["data"]["status"] == "differs"
    assert row.processed is not None
    assert row.processed["response"] == prompt_for("locomo", "").told


def test_conversations_are_refused_where_nobody_would_be_asked(tmp_path: Path) -> None:
    file = locomo_file(tmp_path)
    for dataset in ("mini-memory", file):
        with pytest.raises(InvalidSpec, match=r"evaluate_memory\(\), or load it by"):
            evaluate([Fixed()], dataset, progress=False)
    rows = evaluate([Fixed()], load_dataset(file, as_transcript=True), progress=False, blind=True)
    assert [row.primary_score for row in rows.rows] == ["locomo_f1"]
    assert rows.rows[0].processed is not None
    assert "red bike" in rows.rows[0].processed["context"]
    assert "evidence" not in rows.rows[0].processed


def test_a_retrieving_memory_has_recall_of_its_evidence(tmp_path: Path) -> None:
    result = evaluate_memory([Bm25], locomo_file(tmp_path), progress=False)
    assert result.rows[0].scores["evidence_recall_at_1"] == 1.0
