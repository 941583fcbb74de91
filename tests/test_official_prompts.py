"""The script that checks the digests of official prompts, on checkouts made for it."""

import json
from pathlib import Path

import pytest

from cbench_server.evaluators.judge.official_prompts import DIGESTS, prompt_digest
from cbench_server.texts.chat_markup import marked, messages_of
from scripts.official_prompts import main

_EVALUATE_QA = """
def get_anscheck_prompt(task, question, answer, response, abstention=False):
    if not abstention:
        if task in ["single-session-user", "multi-session"]:
            template = "Same? {} {} {}"
        elif task == "temporal-reasoning":
            template = "When? {} {} {}"
        else:
            raise NotImplementedError
    else:
        template = "None? {} {} {}"
    return template.format(question, answer, response)
"""


def test_what_is_not_the_published_text_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "LongMemEval/src/evaluation/evaluate_qa.py"
    memory.parent.mkdir(parents=True)
    memory.write_text(_EVALUATE_QA)
    chat = tmp_path / "FastChat/fastchat/llm_judge/data/judge_prompts.jsonl"
    chat.parent.mkdir(parents=True)
    row = {"name": "single-v1", "type": "single", "system_prompt": "S", "prompt_template": "P"}
    chat.write_text("\n".join([json.dumps(row), json.dumps({**row, "type": "pairwise"})]))
    same = "Same? {question} {answer} {response}"
    known = {**DIGESTS["longmemeval"], "": prompt_digest(same)}
    monkeypatch.setitem(DIGESTS, "longmemeval", known)
    assert main([str(tmp_path)]) == 1
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert sorted((line[0], line[1], line[3]) for line in lines) == [
        ("longmemeval", "-", "known"),
        ("longmemeval", "abstention", "NOT KNOWN"),
        ("longmemeval", "temporal-reasoning", "NOT KNOWN"),
        ("mt-bench", "single-v1", "NOT KNOWN"),
    ]
    assert main([str(tmp_path / "FastChat/fastchat")]) == 1  # Nothing is there.
    assert main([]) == 2


def test_messages_survive_their_markup() -> None:
    messages = [("system", "Be fair.\n"), ("user", "Q\n\nA")]
    assert messages_of(marked(messages)) == messages
    assert messages_of("plain {x}") == [("user", "plain {x}")]
