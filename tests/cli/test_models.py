"""Readers, proxies and prompts by flag: what models are sent, and what tables say of it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cbench
from tests.fixtures.model_server import Handler, ModelServer, clean_environment, server

__all__ = ["ModelServer", "clean_environment", "server"]

PROBLEM = "Ann has three apples and buys five more pears. How many pieces of fruit has she?"
ROWS = [
    {"id": n, "context": f"Box {n} holds {n} red balls.", "question": f"Box {n}?", "answer": str(n)}
    for n in range(1, 5)
]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "balls.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def asked(server: ModelServer) -> list[str]:
    return [request["messages"][-1]["content"] for request in server.requests]


def read_run(cbench: Cbench, server: ModelServer, *flags: object) -> dict[str, Any]:
    done = cbench(
        *("run", "--reader", server.url, "--no-anchors", "--model", "m", "--output", "json"), *flags
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_datasets_prompt_states_the_task_and_the_answers_form(
    cbench: Cbench, server: ModelServer
) -> None:
    server.say("8")
    done = cbench(
        *("run", "--builtin", "truncate-tail", "--proxy", server.url, "--reader", server.url),
        *(
            "--model",
            "m",
            "--dataset",
            "mini-maths",
            "-n",
            "1",
            "--option",
            "truncate-tail.ratio=0.3",
        ),
    )
    assert done.returncode == 0, done.stderr
    whole = next(text for text in asked(server) if "rolls are left" in text)
    cut = next(text for text in asked(server) if text is not whole)
    # The problem is its own context: it is sent once, and to the reader as the system left it.
    assert whole.count("How many rolls are left?") == 1
    assert "How many rolls are left?" not in cut
    for text in (whole, cut):
        assert text.startswith("Solve the problem")
        assert text.endswith("written as \\boxed{...}.")
    assert {request["temperature"] for request in server.requests} == {0}
    assert {request["max_tokens"] for request in server.requests} == {1024}
    assert "Prompt: in our own words, at most 1,024 tokens of answer" in done.stdout


def test_a_template_and_few_shot_examples_by_file(
    cbench: Cbench, server: ModelServer, rows: Path, tmp_path: Path
) -> None:
    server.say("1")
    template = tmp_path / "prompt.txt"
    template.write_text(
        "{examples}\n\n{{Now}} {context} {question}\n[[example]]\n{context} It is {answer}.\n"
    )
    flags = ["--builtin", "identity", "--dataset", rows, "--prompt", template, "--few-shot", "2"]
    flags += ["--system-prompt", "Be brief.", "--max-tokens", "7", "--seed", "3"]
    run = read_run(cbench, server, *flags)
    for request in server.requests:
        system, user = request["messages"]
        assert system == {"role": "system", "content": "Be brief."}
        assert user["content"].count("It is") == 2
        last = user["content"].rsplit("{Now} ", 1)[1]
        assert user["content"].count(last.split(" Box")[0]) == 1
        assert request["max_tokens"] == 7
    prompt = run["config"]["prompts"]["datasets"]["balls"]
    assert (prompt["few_shot"], prompt["origin"], prompt["status"]) == (2, "file", "differs")
    assert prompt["few_shot_source"].startswith("the first rows of the same split")
    server.requests.clear()
    again = read_run(cbench, server, *flags)
    assert again["config"]["prompts"] == run["config"]["prompts"]


def test_plain_sends_the_examples_own_texts(
    cbench: Cbench, server: ModelServer, rows: Path
) -> None:
    server.say("1")
    flags = ["--builtin", "identity", "--dataset", rows, "--prompt", "plain", "-n", "1"]
    read_run(cbench, server, *flags)
    assert asked(server) == ["Box 1 holds 1 red balls.\n\nBox 1?"]


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{context.x}", 'line 1 of the prompt template has "{context.x}"'),
        ("{context} {answer}", '"answer", which is withheld'),
        ("{context} {kontext}", 'no field "kontext"; did you mean "context"?'),
        ("Say yes.", "names no field of an example"),
        ("{context", 'has "{"'),
    ],
)
def test_a_template_that_cannot_be_meant_is_refused_before_any_call(
    cbench: Cbench, server: ModelServer, rows: Path, tmp_path: Path, template: str, says: str
) -> None:
    (tmp_path / "p.txt").write_text(template)
    done = cbench(
        *("run", "--builtin", "identity", "--reader", server.url, "--dataset", rows),
        *("--prompt", "p.txt"),
    )
    assert (done.returncode, server.requests) == (2, [])
    assert says in done.stderr


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--prompt", "official"], "Prompts of others do not ship"),
        (["--prompt", "none.txt"], "--prompt none.txt: No such file"),
        (["--prompt", "plain", "--few-shot", "2"], "a plain prompt has no few-shot examples"),
        (["--few-shot", "4"], "has 4 examples with an answer to draw from, too few for 4"),
        (["--reader-option", "top_p=1"], "--reader-option needs --reader"),
        (["--few-shot", "0"], "at least 1"),
    ],
)
def test_flags_that_cannot_be_meant_are_refused(
    cbench: Cbench, rows: Path, flags: list[str], says: str
) -> None:
    done = cbench("run", "--builtin", "identity", "--dataset", rows, *flags)
    assert done.returncode == 2
    assert says in done.stderr


def test_options_of_the_reader_go_into_its_requests(
    cbench: Cbench, server: ModelServer, rows: Path
) -> None:
    server.say("1")
    flags = ["--builtin", "identity", "--dataset", rows, "-n", "1", "--reader-option", "top_p=0.5"]
    flags += ["--reader-option", "temperature=null", "--reader-option", "max_completion_tokens=9"]
    read_run(cbench, server, *flags)
    (request,) = server.requests
    assert set(request) == {"model", "messages", "top_p", "max_completion_tokens"}


def test_what_was_cut_is_marked_counted_and_said(
    cbench: Cbench, server: ModelServer, rows: Path
) -> None:
    choice = {"message": {"content": "1"}, "finish_reason": "length"}
    usage = {"prompt_tokens": 30, "completion_tokens": 1}
    server.answer(429, "slow", retry_after="0")
    server.answer(400, "This model's maximum context length is 9 tokens.")
    server.answer(200, json.dumps({"choices": [choice], "usage": usage}))
    flags = ["--builtin", "identity", "--dataset", rows, "--context-window", "60"]
    run = read_run(cbench, server, *flags, "--max-tokens", "40")
    rows_by_id = {row["example_id"]: row for row in run["rows"]}
    cut = [row for row in rows_by_id.values() if row.get("failure")]
    assert [(row["marks"], row["failure"]["reason"]) for row in cut] == [
        (["PROMPT_CUT"], "CONTEXT_OVERFLOW")
    ]
    kept = [row for row in rows_by_id.values() if not row.get("failure")]
    assert {tuple(row["marks"]) for row in kept} == {("PROMPT_OVER_WINDOW", "ANSWER_CUT")}
    assert {row["finish_reason"] for row in kept} == {"length"}
    values = run["summary"]["identity"]
    assert (values["reader_requests"], values["reader_retries"]) == (5, 1)
    assert (values["num_answers_cut"], values["num_prompts_cut"]) == (3, 1)
    assert values["reader_prompt_tokens"] == 90
    codes = {note["code"]: note["text"] for note in run["notes"]}
    assert "on 1 of 4 rows the model did not read the whole prompt" in codes["PROMPT_CUT"]
    assert "3 of 4 answers ended" in codes["ANSWER_CUT"]
    table = cbench("show", run["run_id"]).stdout
    assert codes["PROMPT_CUT"] in " ".join(table.split())


def judged_or_asked(cbench: Cbench, rows: Path, *flags: object) -> dict[str, Any]:
    words = "word " * 900
    lines = [json.loads(line) | {"context": words} for line in rows.read_text().splitlines()]
    rows.write_text("\n".join(map(json.dumps, lines)))
    answers = rows.with_name("long.jsonl")
    answers.write_text("\n".join(json.dumps({"id": n["id"], "response": words}) for n in lines))
    done = cbench("run", *flags, "--dataset", rows, "--prompt", "plain", "--output", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_proxy_that_read_far_less_than_it_was_sent_is_marked(
    cbench: Cbench, server: ModelServer, rows: Path
) -> None:
    server.report(0.2, "1")
    run = judged_or_asked(cbench, rows, "--proxy", server.url, "--model", "m")
    assert [row["marks"] for row in run["rows"]] == [["PROMPT_CUT"]] * 4
    (values,) = run["summary"].values()
    assert (values["num_prompts_cut"], values["num_judge_prompts_cut"]) == (4, 0)
    said = {note["code"]: note["text"] for note in run["notes"]}["PROMPT_CUT"]
    assert "the proxy shortens prompts, or the endpoint behind it cuts them" in said


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_judge_that_did_not_read_its_whole_prompt_is_marked(
    cbench: Cbench, server: ModelServer, rows: Path, is_refused: bool
) -> None:
    # The controls of the judge are short, and fit.
    refusal = json.dumps({"error": "maximum context length is 500 tokens"})
    document = {"choices": [{"message": {"content": "Rating: 5"}}], "usage": {"prompt_tokens": 90}}

    def step(handler: Handler) -> None:
        is_long = is_refused and "word word" in str(handler.request_body["messages"])
        handler.reply(*((400, refusal) if is_long else (200, json.dumps(document))))

    server.steps.append(step)
    judge = ["--judge-url", server.url, "--judge-model", "j", "--judge-unqualified"]
    answers = rows.with_name("long.jsonl")
    answers.touch()
    run = judged_or_asked(cbench, rows, "--predictions", answers, *judge)
    assert all("JUDGE_PROMPT_CUT" in row["marks"] for row in run["rows"])
    failures = [row.get("evaluator_failures", {}) for row in run["rows"]]
    reasons = {each["reason"] for failed in failures for each in failed.values()}
    assert reasons == ({"CONTEXT_OVERFLOW"} if is_refused else set())
    (values,) = run["summary"].values()
    assert (values["num_prompts_cut"], values["num_judge_prompts_cut"]) == (0, 4)
    codes = {note["code"]: note["text"] for note in run["notes"]}
    assert "on 4 of 4 rows the model of an evaluator did not read" in codes["JUDGE_PROMPT_CUT"]


def test_a_readers_own_limit_is_said_and_named_where_answers_are_cut(
    cbench: Cbench, server: ModelServer, rows: Path
) -> None:
    choice = {"message": {"content": "1"}, "finish_reason": "length"}
    server.answer(200, json.dumps({"choices": [choice]}))
    flags = ["--builtin", "identity", "--dataset", rows, "--reader-option", "max_tokens=9"]
    run = read_run(cbench, server, *flags)
    (cut,) = [note["text"] for note in run["notes"] if note["code"] == "ANSWER_CUT"]
    assert cut.endswith("Raise it with --reader-option max_tokens=N.")
    table = " ".join(cbench("show", run["run_id"]).stdout.split())
    assert "The reader answers with at most 9 tokens, by its own max_tokens." in table
    assert "tokens of answer" not in table


def test_an_answer_is_reused_only_for_the_same_prompt(
    cbench: Cbench, server: ModelServer, rows: Path
) -> None:
    server.say("1")
    flags = ["--builtin", "identity", "--dataset", rows, "--reuse"]
    read_run(cbench, server, *flags)
    read_run(cbench, server, *flags)
    assert len(server.requests) == 4
    read_run(cbench, server, *flags, "--prompt", "plain")
    assert len(server.requests) == 8


def test_a_served_system_is_told_the_instruction(cbench: Cbench, tmp_path: Path) -> None:
    program = tmp_path / "answers.py"
    program.write_text(
        "from cbench_client import serve\n\n\n"
        "class Answers:\n"
        "    name = 'answers'\n\n"
        "    def process(self, example, instruction):\n"
        "        return {**example, 'response': instruction}\n\n\n"
        "serve(Answers())\n"
    )
    done = cbench(
        *("run", "--launch", f"{sys.executable} {program}", "--dataset", "mini-choice", "-n", "1"),
        *("--output", "json"),
    )
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    (row,) = run["rows"]
    shown = cbench("show", run["run_id"], "--example", row["example_id"])
    assert "Choose the one right option." in shown.stdout
    # It is no part of the example, so in no count of what the system was given.
    assert row["input_tokens"] < 40
