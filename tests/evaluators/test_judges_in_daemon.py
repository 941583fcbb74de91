"""Judges of a real daemon: who gets which key, and what a run keeps."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench_client import BenchClient, Refused, row_to_dict
from cbench_client.messages.convert import fields_from_proto
from cbench_server.evaluators import LLMJudge
from tests.e2e.following import follow, run
from tests.e2e.processes import DaemonProcess, examples, start_system
from tests.fixtures import preloaded
from tests.fixtures.model_server import Handler, ModelServer
from tests.fixtures.scripted_judges import sections_of

OURS, ALLOWED = "sk-the-daemons-own", "sk-for-the-judge"
PAIR = ({"question": "What is 2+2?", "answer": "4"}, {"response": "It is 4."})


@pytest.fixture
def client(
    tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[BenchClient]:
    """A daemon that has a key of its own, and one that may go to the model server."""
    config = tmp_path / "cbench.toml"
    config.write_text(f'[credentials.judge]\nenv = "JUDGE_KEY"\nprefix = "{server.url}"\n')
    monkeypatch.setenv("OPENAI_API_KEY", OURS)
    monkeypatch.setenv("JUDGE_KEY", ALLOWED)
    with (
        DaemonProcess(tmp_path / "home", "--config", str(config)) as daemon,
        BenchClient(daemon.address) as bench,
    ):
        yield bench


def test_a_judge_scores_over_the_wire_as_in_process(
    client: BenchClient, server: ModelServer
) -> None:
    server.say("Rating: 4", prompt_tokens=50)
    result = client.score("llm-judge", *PAIR, {"base_url": server.url, "model": "m"})
    assert result.scores == LLMJudge(server.url, "m", "").score(*PAIR) == {"judge_score": 0.75}
    assert result.details["reply"] == "Rating: 4"
    assert server.requests[0] == server.requests[1]


def test_a_url_that_a_client_names_never_gets_the_daemons_key(
    client: BenchClient, server: ModelServer
) -> None:
    server.say("YES")
    client.score("memory-judge", *PAIR, {"base_url": server.url})
    client.score("memory-judge", *PAIR, {"base_url": server.url, "credential": "judge"})
    assert "authorization" not in server.headers[0]
    assert server.headers[1]["authorization"] == f"Bearer {ALLOWED}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, 'needs the option "base_url"'),
        ({"api_key": "sk-mine"}, 'the option "credential"'),
        ({"credential": "other"}, 'no credential "other"'),
        ({"base_url": "http://127.0.0.1:1", "credential": "judge"}, "may be sent to"),
        ({"base_url": "http://169.254.169.254"}, "link-local"),
        ({"base_url": "nowhere"}, "is not a base URL"),
        ({"base_url": "http://h", "pack": "corectness"}, 'did you mean "correctness"'),
        ({"base_url": "http://h", "repeats": 0}, "repeats must be at least 1"),
    ],
    ids=["url", "key", "unknown", "elsewhere", "metadata", "no-url", "pack", "repeats"],
)
def test_what_a_judge_may_not_be_told_is_refused_in_a_call_and_in_a_run(
    client: BenchClient, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(Refused) as refused:
        client.score("llm-judge", *PAIR, options)
    assert said in str(refused.value)
    assert "sk-" not in str(refused.value)
    spec = {
        "systems": [{"builtin": "identity"}],
        "datasets": [{"name": "mini-qa"}],
        "evaluators": [{"name": "llm-judge", "options": options}],
    }
    with pytest.raises(Refused) as refused:
        follow(client.evaluate(spec))
    assert said in str(refused.value)


def test_a_run_keeps_verdicts_apart_from_outages_and_the_pack_in_its_config(
    client: BenchClient, server: ModelServer
) -> None:
    def answer(handler: Handler) -> None:
        judged = sections_of(handler.request_body["messages"][0]["content"])["RESPONSE"]
        if judged == "Paris 1":
            handler.reply(401, '{"error": "no credit"}')
        else:
            handler.reply(200, json.dumps({"choices": [{"message": {"content": "5"}}]}))

    server.steps.append(answer)
    options = {"base_url": server.url, "model": "m", "credential": "judge"}
    with start_system("echo") as system:
        spec = {
            "systems": [{"target": system.address}],
            "evaluators": [{"name": "llm-judge", "options": options}],
            "allow_unqualified_judges": True,
        }
        seen = run(client, spec, examples(3))
    assert seen.state == "SUCCEEDED"
    rows = [row_to_dict(row) for row in seen.rows]
    assert [row["scores"].get("judge_score", "none") for row in rows].count(1.0) == 2
    [failed] = [row for row in rows if "judge_score" not in row["scores"]]
    assert "f1" in failed["scores"]
    [note] = [note for note in failed["evaluator_notes"] if note["evaluator"] == "llm-judge"]
    assert note["failure"]["reason"] == "EVALUATOR_BROKEN"
    assert "no credit" in note["failure"]["message"]
    config = fields_from_proto(client.get(seen.finished.run_id).config)
    [judge] = [each for each in config["datasets"][0]["evaluators"] if each["name"] == "llm-judge"]
    assert judge["version"] == LLMJudge(server.url).version
    assert judge["options"]["model"] == "m"
    assert ALLOWED not in repr(config)
    # The judge calls all right, so every figure of it is marked, also where notes are not read.
    listed = next(each for each in client.list() if each.run_id == seen.finished.run_id)
    for told in (config, fields_from_proto(listed.config)):
        assert told["marks"]["judge_score"] == told["marks"]["mean_score:judge_score"] == "†"
        assert "mean_score:f1" not in told["marks"]


def test_the_command_line_adds_a_judge_with_the_users_own_key(
    tmp_path: Path, server: ModelServer
) -> None:
    server.say("4", prompt_tokens=10, completion_tokens=1)
    file = tmp_path / "examples.jsonl"
    lines = [{"id": n, "context": "c", "question": "2+2?", "answer": "4"} for n in range(2)]
    file.write_text("\n".join(map(json.dumps, lines)))
    command = [
        *(Path(sys.executable).parent / "cbench", "run", "--proxy", server.url),
        *("--dataset", file, "--judge-url", server.url, "--judge-model", "judge-model"),
        *("--judge-repeats", "2", "--judge-rpm", "60000", "--judge-pack", "helpfulness"),
        *(
            "--judge-price",
            "1,2",
            "--max-cost",
            "1",
            "--output",
            "jsonl",
            "--quiet",
            "--judge-unqualified",
        ),
    ]
    environment = {**os.environ, "CBENCH_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": OURS}
    finished = preloaded.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, check=False
    )
    assert finished.returncode == 0, finished.stderr
    rows = [json.loads(line) for line in finished.stdout.splitlines()]
    assert [row["scores"]["judge_score"] for row in rows] == [0.75, 0.75]
    assert [row["scores"]["judge_agreement"] for row in rows] == [1.0, 1.0]
    asked = [request for request in server.requests if request["model"] == "judge-model"]
    assert len(asked) == 4
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {OURS}"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--judge-model", "m"], "--judge-model needs --judge-url"),
        (["--judge-price", "1,2"], "--judge-price needs --judge-url"),
        (["--judge-url", "http://h", "--max-cost", "1"], "--max-cost needs --judge-price"),
        (["--judge-url", "http://h", "--judge-price", "1"], "is not a price"),
    ],
)
def test_judge_flags_that_do_not_fit_together_are_refused(
    tmp_path: Path, flags: list[str], said: str
) -> None:
    command = [str(Path(sys.executable).parent / "cbench"), "run", "--builtin", "identity"]
    finished = preloaded.run(
        [*command, "--dataset", "mini-qa", *flags],
        capture_output=True,
        text=True,
        env={**os.environ, "CBENCH_HOME": str(tmp_path)},
        check=False,
    )
    assert finished.returncode == 2
    assert said in finished.stderr
